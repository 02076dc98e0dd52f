#include "server/profile/model_profiler.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "server/infer/prepare.h"
#include "server/profile/profile_inputs.h"
#include "server/profile/profiled_session.h"
#include "server/repository/cancel_after.h"

namespace tandem {
namespace {

// Behind whatever a client asks for.
constexpr std::uint64_t kLastPriority = std::numeric_limits<std::uint64_t>::max();
// Several times what kMostEvents need; loops make more.
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{1} << 30;

// The work of one run: checked as a request is.
Result<WorkItem> PrepareRun(std::shared_ptr<Servable> servable, const std::vector<Tensor>& inputs) {
  InferRequest request;
  for (const Tensor& input : inputs) request.inputs.push_back({.tensor = input, .shared = {}});
  const SharedRegions no_regions;
  OutputRegions none;
  TANDEM_ASSIGN(WorkItem item, PrepareWork(request, std::move(servable), no_regions, 0, none));
  item.priority = kLastPriority;
  return item;
}

// The one file of a folder.
Result<SessionProfile> ReadProfile(const std::filesystem::path& folder, std::uint64_t runs) {
  std::error_code ec;
  for (const auto& file : std::filesystem::directory_iterator(folder, ec)) {
    if (!file.path().filename().string().ends_with(".json")) continue;
    const std::uintmax_t size = std::filesystem::file_size(file.path(), ec);
    if (ec || size > kMostFileBytes) {
      return Fail(ErrorCode::kTooLarge, "what ONNX Runtime noted has {} bytes; it is not read", size);
    }
    std::ifstream in(file.path());
    SessionProfile profile = ReadOrtProfile(in, runs);
    if (profile.runs == 0) break;
    return profile;
  }
  return Fail(ErrorCode::kInternal, "ONNX Runtime noted no runs; is there room in the folder for temporary files?");
}

}  // namespace

Result<std::uint64_t> ModelProfiler::FitRuns(std::optional<std::uint64_t> asked, std::uint64_t nodes) {
  const std::uint64_t room = kMostEvents / std::max<std::uint64_t>(nodes, 1);
  if (room < 2) {
    return Fail(ErrorCode::kTooLarge, "it has {} nodes; a profile has room for {} in all runs, and needs two", nodes,
                kMostEvents);
  }
  const std::uint64_t most = std::min(room - 1, kMostRuns);
  if (asked && (*asked < 1 || *asked > most)) {
    return Invalid("runs is {}; a profile of {} nodes has room for 1 to {}", *asked, nodes, most);
  }
  return asked.value_or(std::min(most, kUsualRuns));
}

Status ModelProfiler::RunOnce(const WorkItem& like) const {
  WorkItem item{.servable = like.servable,
                .inputs = like.inputs,
                .outputs = like.outputs,
                .batch = like.batch,
                .priority = like.priority,
                .cancel = like.cancel,
                .done = {}};
  // Shared: who answers may still be in it when we have heard.
  const auto answer = std::make_shared<std::promise<Status>>();
  item.done = [answer](const Result<WorkResult>& result) {
    answer->set_value(result ? Status() : std::unexpected(result.error()));
  };
  inference_.RunOwn(std::move(item));
  return answer->get_future().get();
}

Result<std::uint64_t> ModelProfiler::RunAll(const repository::ProfiledVersion& version,
                                            const std::vector<Tensor>& inputs, std::uint64_t runs,
                                            CancelToken& cancel) const {
  const Servable& served = *version.served;
  const auto longest =
      version.extent.has_subgraphs ? std::optional<std::chrono::nanoseconds>(kTimeWithSubgraphs) : std::nullopt;
  // Not the name of the one that is served: traces tell them apart. Shared as WorkItem wants it.
  const auto servable =
      std::make_shared<Servable>(served.name() + " (profiled)", served.version(), served.signature(),
                                 BatchSettings{.max_batch_size = served.batching().max_batch_size}, std::nullopt,
                                 std::make_unique<ProfiledSession>(*version.session, clock_, longest));
  servable->LeaveUncounted();
  TANDEM_ASSIGN(WorkItem item, PrepareRun(servable, inputs));
  item.cancel = std::make_shared<CancelToken>();
  const auto registration = cancel.OnCancel([token = item.cancel.get()] { token->Cancel(); });
  const repository::CancelAfter limit(*item.cancel, kTime);
  std::uint64_t made = 0;
  for (std::uint64_t run = 0; run <= runs; ++run, ++made) {
    const Status ran = RunOnce(item);
    if (ran) continue;
    const bool enough = limit.expired() || ran.error().code == ErrorCode::kTooLarge;
    if (enough && made > 1) break;
    if (limit.expired()) {
      return Fail(ErrorCode::kUnavailable, "two runs of model '{}' were not made within {}: they wait for all requests",
                  served.name(), kTime);
    }
    return Fail(ran.error().code, "a run of model '{}' failed: {}", served.name(), ran.error().message);
  }
  return made - 1;
}

Result<ModelProfile> ModelProfiler::Profile(const ProfileRequest& request, CancelToken& cancel) const {
  std::uint64_t runs = 0;
  std::vector<Tensor> inputs;
  const auto check = [&](const repository::ProfiledVersion& found) -> Status {
    TANDEM_ASSIGN(runs, FitRuns(request.runs, found.extent.nodes));
    TANDEM_ASSIGN(inputs, ProfileInputs(found.served->signature(), found.served->batching(), request.shapes,
                                        found.sample ? &*found.sample : nullptr));
    // As a request for it would be.
    TANDEM_TRY(PrepareRun(found.served, inputs));
    return {};
  };
  TANDEM_ASSIGN(repository::ProfiledVersion version, repository_.OpenProfiled(request.model, request.version, check));
  const Servable& served = *version.served;
  TANDEM_ASSIGN(const std::uint64_t made, RunAll(version, inputs, runs, cancel));
  version.session.reset();  // Now it writes.
  ModelProfile profile{.model = served.name(), .version = served.version_text()};
  for (const Tensor& input : inputs)
    profile.inputs.push_back({.name = input.name, .type = input.type, .shape = input.shape});
  TANDEM_ASSIGN(profile.session, ReadProfile(version.folder->path(), made));
  return profile;
}

}  // namespace tandem
