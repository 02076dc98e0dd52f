#include "bench/training/networks.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "api/base/format.h"

namespace tandem::bench {

Result<std::int64_t> BlocksOf(const Network& network) {
  const std::string_view text = std::string_view(network.name).substr(std::string_view(kDeepResNet).size());
  constexpr int kMostLayers = 10'000;
  int layers = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), layers);
  const bool number = error == std::errc() && stop == text.data() + text.size();
  if (!number || layers < kLayersOfBlocks + 2 || layers > kMostLayers || (layers - 2) % kLayersOfBlocks != 0) {
    return Invalid("there is no network '{}': it has six layers to a set of blocks, and two more", network.name);
  }
  return (layers - 2) / kLayersOfBlocks;
}

Result<Network> FindNetwork(const std::string& name) {
  if (name == "squeezenet" || name == "resnet50")
    return Network{.name = name, .example = {3, 224, 224}, .classes = 1000};
  if (name.starts_with(kDeepResNet)) {
    Network deep{.name = name, .example = {3, 32, 32}, .classes = 10};
    TANDEM_TRY(BlocksOf(deep));
    return deep;
  }
  if (name == "transformer") return Network{.name = name, .example = {kTokens}, .tokens = true, .classes = 10};
  return Invalid("there is no network '{}'; there are squeezenet, resnet50 and transformer", name);
}

}  // namespace tandem::bench
