// tandem-trainer RUN_FILE: one training job, in a process of its own. Started by the server with the pipe that it
// reports to and the board that it obeys; not for people.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/format.h"
#include "colocation/board_gate.h"
#include "colocation/serving_sign.h"
#include "colocation/trainer_board.h"
#include "colocation/trainer_threads.h"
#include "profiler/machine.h"
#include "runtimes/training/data/mapped_file.h"
#include "runtimes/training/estimate/memory_estimator.h"
#include "runtimes/training/ops/torch_error.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"
#include "server/trainer/event_pipe.h"
#include "server/trainer/run_file.h"
#include "server/trainer/trainer_log.h"

// Of the OpenMP that libtorch computes with; its header is the compiler's, and not every one has it.
extern "C" void omp_set_num_threads(int threads);

namespace tandem {
namespace {

// SIGTERM asks for a checkpoint and the end.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnTerminateSignal(int) {
  interrupted.store(true);
}

// So that no job is trained twice at a time, whoever starts it. Held until the process ends.
Status LockFolder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(ErrorCode::kInternal, "'{}' cannot be opened", file.string());
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kInternal, "another trainer holds '{}'", file.string());
  }
  return {};
}

// What the server gave the trainer to obey, and to see if it likes.
struct Orders {
  std::unique_ptr<TrainerBoard> board;
  std::unique_ptr<ServingSign> sign;  // Null: none.
};

Result<Orders> TakeOrders() {
  Orders orders;
  TANDEM_ASSIGN(orders.board, TrainerBoard::Attach(kTrainerBoardFd));
  if (::fcntl(kTrainerSignFd, F_GETFD) >= 0) {
    TANDEM_ASSIGN(orders.sign, ServingSign::Attach(kTrainerSignFd));
  }
  return orders;
}

// The lane that the server gave it, if it did.
Status TakeLane(LaneGrant& grant) {
  struct stat status{};
  if (::fstat(kTrainerLaneFd, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const Status given = training::GiveLane(kTrainerLaneFd, grant);
  // Where tensors have no memory of their own they need no lane.
  return given || given.error().code == ErrorCode::kUnsupported ? Status() : given;
}

// Who is told what a run does.
struct Told {
  EventPipe& pipe;
  TrainerLog& log;
};

// What the job will take of memory, before anything is taken, and the plan by which it fits if it is to.
Result<training::FitPlan> TellEstimate(const TrainerRun& run, const Told& told) {
  auto fitted = training::FitMemory(run.job, run.model, run.data_root);
  training::DropFreedMemory();
  if (!fitted) {
    told.log.OnNoEstimate(fitted.error());
    return std::unexpected(fitted.error());
  }
  told.log.OnEstimate(fitted->memory);
  told.pipe.OnEstimate(fitted->memory);
  return std::move(fitted->plan);
}

Result<EndEvent> Train(const TrainerRun& run, const Orders& orders, const Told& told) {
  TANDEM_TRY(LockFolder(run.folder));
  training::KeepFreedMemory();
  at::set_num_threads(run.threads);
  if (run.estimate_only) {
    const auto plan = TellEstimate(run, told);
    if (!plan) return std::unexpected(plan.error());
    return EndEvent{.outcome = TrainerOutcome::kFinished, .step = 0, .baseline = {}, .best = {}, .error = {}};
  }
  training::FitPlan plan;
  if (!run.measure_only) {
    auto found = TellEstimate(run, told);
    // A job that cannot be estimated can be run, unless it is to fit.
    if (!found && run.job.fit) return std::unexpected(found.error());
    if (found) plan = *std::move(found);
  }
  if (run.job.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Which thread count an operator is computed with may show in its result.
  const bool fixed = run.job.deterministic;
  const int cores = AllowedCores();
  const auto use_threads = [&run, fixed, cores](int ordered, int taken) {
    if (fixed) return;
    omp_set_num_threads(ThreadsBesideRuns(ordered > 0 ? std::min(ordered, run.threads) : run.threads, taken, cores));
  };
  BoardGate gate(*orders.board, RealClock::Instance(), use_threads, orders.sign.get(), kTrainerBellFd);
  TANDEM_TRY(TakeLane(gate));
  const training::TrainerPaths paths{
      .model = run.model, .folder = run.folder, .data_root = run.data_root, .job = run.number};
  TANDEM_ASSIGN(const auto trainer,
                training::Trainer::Prepare(run.job, paths, gate, told.log, RealClock::Instance(), plan));
  training::TrainingEnd end = training::TrainingEnd::kFinished;
  if (run.measure_only) {
    TANDEM_TRY(trainer->Measure());
  } else {
    TANDEM_ASSIGN(end, trainer->Run(interrupted));
  }
  const training::TrainingProgress& progress = trainer->progress();
  EndEvent event{.outcome = TrainerOutcome::kFinished,
                 .step = progress.step,
                 .baseline = progress.baseline,
                 .best = progress.best,
                 .error = {}};
  if (end == training::TrainingEnd::kStoppedEarly) event.outcome = TrainerOutcome::kStoppedEarly;
  if (end == training::TrainingEnd::kInterrupted) event.outcome = TrainerOutcome::kInterrupted;
  return event;
}

// Memory may run out anywhere, also where nobody expects it.
Result<EndEvent> TrainWithinMemory(const TrainerRun& run, const Orders& orders, const Told& told) {
  Result<EndEvent> end = Fail(ErrorCode::kInternal, "");
  try {
    end = Train(run, orders, told);
  } catch (const std::bad_alloc&) {
    end = std::unexpected(training::OutOfMemory("the trainer needs more than it may have"));
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    end = std::unexpected(training::OutOfMemory("there is no room for the stack of a thread"));
  } catch (const c10::Error& error) {
    end = std::unexpected(training::TorchError("the trainer", error));
    // Nobody knows whose fault it is out here.
    if (end.error().code != ErrorCode::kTooLarge) end.error().code = ErrorCode::kInternal;
  }
  const bool bounded = run.job.memory && !run.estimate_only;
  if (bounded && !end && end.error().code == ErrorCode::kTooLarge && !end.error().message.contains("/memory")) {
    end.error().message += Format("; the limit of the job is {} bytes (/memory)", *run.job.memory);
  }
  return end;
}

// What is told when memory runs out where nothing can be caught: in a thread of a library. Made before, because then
// there is no memory to make it.
std::string last_words;

[[noreturn]] void OnTerminate() {
  bool memory = false;
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    memory = true;
  } catch (const c10::Error& error) {
    memory = training::TorchError("", error).code == ErrorCode::kTooLarge;
  } catch (const std::system_error& error) {
    memory = error.code() == std::errc::resource_unavailable_try_again;  // No room for the stack of a thread.
  } catch (...) {
    memory = false;
  }
  if (!memory) std::abort();
  [[maybe_unused]] const ssize_t told = ::write(kTrainerEventsFd, last_words.data(), last_words.size());
  ::_exit(1);
}

void PrepareLastWords(const TrainingJob& job) {
  Error error = training::OutOfMemory("a part of the trainer could not go on");
  if (job.memory) error.message += Format("; the limit of the job is {} bytes (/memory)", *job.memory);
  last_words =
      ToLine(EndEvent{.outcome = TrainerOutcome::kFailed, .step = 0, .baseline = {}, .best = {}, .error = error}) +
      "\n";
  std::set_terminate(OnTerminate);
}

int Main(const char* run_file) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // A file that may not grow is an error of writing like any other.
  std::signal(SIGTERM, OnTerminateSignal);
  std::signal(SIGINT, SIG_IGN);  // A terminal sends it to the server, too, which decides.
  training::GuardMappedFiles();
  EventPipe pipe(kTrainerEventsFd, RealClock::Instance());
  const auto orders = TakeOrders();
  auto run = ReadRunFile(run_file);
  TrainerLog log(STDERR_FILENO, RealClock::Instance(), pipe);
  if (run) {
    PrepareLastWords(run->job);
    log.OnRun(*run);
  }
  Result<EndEvent> end = !orders ? std::unexpected(orders.error())
                         : !run  ? std::unexpected(run.error())
                                 : TrainWithinMemory(*run, *orders, {pipe, log});
  if (!end) {
    end = EndEvent{.outcome = TrainerOutcome::kFailed, .step = 0, .baseline = {}, .best = {}, .error = end.error()};
  }
  log.OnEnd(*end);
  pipe.OnEnd(*end);
  return end->outcome == TrainerOutcome::kFailed ? 1 : 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("tandem-trainer is started by tandem serve\n", stderr);
    return 2;
  }
  try {
    return tandem::Main(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tandem-trainer: %s\n", e.what());
    return 1;
  }
}
