#include "bench/training/networks.h"

namespace tandem::bench {

Result<Network> FindNetwork(const std::string& name) {
  if (name == "squeezenet" || name == "resnet50")
    return Network{.name = name, .example = {3, 224, 224}, .classes = 1000};
  if (name == "transformer") return Network{.name = name, .example = {kTokens}, .tokens = true, .classes = 10};
  return Invalid("there is no network '{}'; there are squeezenet, resnet50 and transformer", name);
}

}  // namespace tandem::bench
