#pragma once

#include <span>
#include <vector>

#include "api/base/result.h"
#include "api/base/shape.h"
#include "runtimes/training/data/example_source.h"
#include "runtimes/training/data/picture.h"

namespace tandem::training {

// How a picture becomes the model's input: its size, the order of its dimensions and the scale of its values.
struct ImageLayout {
  int channels = 0;
  int height = 0;
  int width = 0;
  bool channels_first = true;
  Shape shape;                   // Of one example.
  std::vector<float> mean;       // For each channel.
  std::vector<float> deviation;  // The same.

  // Recognises [C,H,W], [H,W,C] (1 or 3 channels) and [H,W].
  [[nodiscard]] static Result<ImageLayout> Make(const DataNeeds::Input& input, const DataSpec& spec);

  // Writes (value / 255 - mean) / deviation for each sample of a picture of this size.
  void Store(const Picture& picture, std::span<float> values) const;
};

}  // namespace tandem::training
