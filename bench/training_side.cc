#include "bench/training_side.h"

#include <sys/socket.h>

#include "api/base/format.h"
#include "bench/training/network_job.h"
#include "bench/training/networks.h"

namespace tandem::bench {
namespace {

constexpr int kMostBatch = 64;

std::filesystem::path Program(const BenchContext& context) {
  return context.bench.parent_path() / "tandem-bench-training";
}

}  // namespace

Result<TrainedNetwork> ParseTrainedNetwork(JsonFields& fields) {
  TrainedNetwork trained;
  TANDEM_ASSIGN(trained.network, fields.Text("network"));
  if (const auto known = FindNetwork(trained.network); !known) {
    return Invalid("{}: {}", fields.At("network"), known.error().message);
  }
  TANDEM_ASSIGN(trained.batch, fields.Whole("batch", 1, kMostBatch));
  return trained;
}

Result<std::filesystem::path> SetupFolder(const BenchContext& context, const std::string& network) {
  std::filesystem::path folder = context.work / ("training-" + network);
  if (std::filesystem::exists(folder / kModelFile)) return folder;
  TANDEM_ASSIGN(const auto writer, ChildProcess::Start({.words = {Program(context), "write", network, folder.string()},
                                                        .environment = {},
                                                        .log = context.work / "training-write.log"}));
  TANDEM_TRY(writer->WaitForEnd([&] { return context.Stopped(); }));
  return folder;
}

Result<std::unique_ptr<TrainingSide>> TrainingSide::Start(const BenchContext& context, const std::string& side,
                                                          const TrainedNetwork& trained, int checkpoint_steps) {
  TANDEM_ASSIGN(const auto folder, SetupFolder(context, trained.network));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Fail(ErrorCode::kInternal, "no pair of sockets can be had");
  }
  loadgen::Socket ours(ends[0]);
  loadgen::Socket theirs(ends[1]);
  const ChildCommand command{
      .words = {Program(context), side, trained.network, folder.string(), std::to_string(trained.batch),
                std::to_string(context.threads), std::to_string(checkpoint_steps)},
      .environment = {},
      .log = context.work / Format("training-{}-{}.log", side, trained.network),
      .input = theirs.fd()};
  TANDEM_ASSIGN(auto process, ChildProcess::Start(command));
  std::unique_ptr<TrainingSide> started(new TrainingSide(std::move(ours), std::move(process)));
  // The child's end is its alone, so that its death ends our waiting.
  theirs.Close();
  if (const Status ready = AwaitFirstStep(started->socket_.fd()); !ready) {
    return Fail(ready.error().code, "{} on {}: {}: {}", side, trained.network, ready.error().message,
                started->process_->LastLine());
  }
  return started;
}

Result<Turn> TrainingSide::Take(double seconds, std::int64_t steps) const {
  auto turn = TakeTurn(socket_.fd(), seconds, steps);
  if (!turn) return Fail(turn.error().code, "{}: {}", turn.error().message, process_->LastLine());
  return turn;
}

}  // namespace tandem::bench
