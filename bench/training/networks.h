#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/result.h"

namespace tandem::bench {

// A network that is trained in two ways: from its ONNX file by tandem (onnx_networks.h), and as a program of libtorch's
// own layers, written by hand (torch_networks.h). Weights have the same names and shapes in both; those of a dense
// layer that a file multiplies from the left are transposed there and called NAME_t.
struct Network {
  std::string name;
  std::vector<std::int64_t> example;  // The shape of one input.
  bool tokens = false;                // Whole numbers below kVocabulary; else floating-point numbers.
  std::int64_t classes = 0;
};

// squeezenet (1.1), resnet50, or transformer: four layers of encoder, 256 wide, over 128 tokens. Or resnet_deep_N for
// tandem alone: He's residual network of N layers for pictures of 32 × 32.
[[nodiscard]] Result<Network> FindNetwork(const std::string& name);

inline constexpr const char* kDeepResNet = "resnet_deep_";
// Two in each block, a block in each of three stages; a convolution before and a dense layer behind them.
inline constexpr int kLayersOfBlocks = 6;
// Blocks in each stage of such a network; kInvalidArgument when it is none.
[[nodiscard]] Result<std::int64_t> BlocksOf(const Network& network);

inline constexpr std::int64_t kVocabulary = 8192;
inline constexpr std::int64_t kTokens = 128;
inline constexpr std::int64_t kWidth = 256;
inline constexpr std::int64_t kHeads = 4;
inline constexpr std::int64_t kInner = 1024;
inline constexpr std::int64_t kLayers = 4;

// The middle of squeezenet, between its first convolution and its last: how many channels a fire module squeezes to and
// how many each of its two expansions has; pooled before where `pool` says so.
struct Fire {
  std::int64_t squeeze;
  std::int64_t expand;
  bool pool;
};
inline constexpr Fire kFires[] = {{16, 64, true},  {16, 64, false},  {32, 128, true},  {32, 128, false},
                                  {48, 192, true}, {48, 192, false}, {64, 256, false}, {64, 256, false}};

// The four stages of resnet50.
struct ResidualStage {
  std::int64_t blocks;
  std::int64_t channels;  // Within a block; four times as many leave it.
  std::int64_t stride;    // Of its first block.
};
inline constexpr ResidualStage kStages[] = {{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}};

}  // namespace tandem::bench
