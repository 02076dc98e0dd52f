#include "server/cli/train_fetch.h"

#include "api/base/format.h"
#include "server/cli/fetch_file.h"

namespace tandem::cli {

Result<std::uint64_t> FetchModel(ApiClient& client, std::int64_t job, const std::filesystem::path& file) {
  return FetchFile(client, Format("/v2/train/jobs/{}/model", job), file);
}

}  // namespace tandem::cli
