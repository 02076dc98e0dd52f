#include "server/repository/version_policy.h"

#include <algorithm>

#include "api/base/shape.h"
#include "api/wire/proto/model_config.pb.h"

namespace tandem::repository {

Result<std::vector<std::int64_t>> ChooseVersions(const inference::ModelVersionPolicy& policy,
                                                 std::span<const std::int64_t> available) {
  std::vector<std::int64_t> versions(available.begin(), available.end());
  std::ranges::sort(versions);
  if (policy.has_specific()) {
    std::vector<std::int64_t> chosen(policy.specific().versions().begin(), policy.specific().versions().end());
    std::ranges::sort(chosen);
    chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
    if (chosen.empty()) return Invalid("version_policy.specific names no version");
    for (const std::int64_t version : chosen) {
      if (!std::ranges::binary_search(versions, version)) {
        return Invalid("version_policy.specific asks for version {}, the folder has {}", version, ShapeText(versions));
      }
    }
    return chosen;
  }
  if (versions.empty()) return Invalid("it has no version folder: expected e.g. '1/model.onnx'");
  if (policy.has_all()) return versions;
  const std::size_t latest = std::max<std::size_t>(policy.latest().num_versions(), 1);
  if (versions.size() > latest) versions.erase(versions.begin(), versions.end() - static_cast<std::ptrdiff_t>(latest));
  return versions;
}

}  // namespace tandem::repository
