#include "server/cli/demo_run.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include <signal.h>
#include <unistd.h>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "loadgen/report_file.h"
#include "server/cli/command.h"
#include "server/cli/demo_digits.h"
#include "server/cli/demo_picture.h"
#include "server/cli/demo_text.h"
#include "server/cli/demo_unmanaged.h"
#include "server/lifecycle/training_wiring.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr const char* kDataFile = "digits.npz";
constexpr std::size_t kTrainingPictures = 4000;
constexpr std::size_t kHeldOutPictures = 200;
// Different ones, so that nothing that is held out is trained on.
constexpr std::uint64_t kTrainingSeed = 1;
constexpr std::uint64_t kHeldOutSeed = 2;
constexpr std::uint64_t kModelSeed = 3;
constexpr int kStepsWithoutEnd = 1'000'000;
// Else so quick a model would be asked more often than all others together.
constexpr double kMostDigitRequests = 50;
// Of the new version, before the demo ends.
constexpr seconds kWithNewVersion{3};
constexpr std::uint64_t kNewAnswers = 10;
constexpr seconds kMostWithNewVersion{120};
// A build that has nothing to do ends at once; one that has something says so.
constexpr seconds kFirstSign{5};

Status MakeFolder(const fs::path& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return Fail(ErrorCode::kInternal, "cannot make '{}': {}", folder.string(), ec.message());
  return {};
}

Status WriteBytes(const fs::path& file, const std::string& bytes) {
  std::ofstream out(file, std::ios::binary);
  out << bytes;
  if (!out.flush()) return Fail(ErrorCode::kInternal, "cannot write '{}'", file.string());
  return {};
}

// On a thread of its own, so that a signal is heard meanwhile. Then the rest is not loaded.
Status LoadModels(Server& server, const Interruption& interruption) {
  auto loaded = std::async(std::launch::async, [&server] { return server.LoadModels(); });
  while (loaded.wait_for(milliseconds(10)) != std::future_status::ready) {
    if (!interruption.raised()) continue;
    server.BeginDrain();
    (void)loaded.get();
    return {};
  }
  return loaded.get();
}

}  // namespace

DemoRun::DemoRun(const DemoOptions& options, const ScratchFolder& scratch, Interruption& interruption)
    : options_(options), scratch_(scratch), interruption_(interruption), start_(RealClock::Instance().Now()) {
  outcome_.training_wanted = options.training;
  outcome_.policy = options.colocation;
}

Result<int> DemoRun::Run() {
  TANDEM_TRY(LayOut());
  StartBuild();
  TANDEM_TRY(Serve());
  if (interruption_.raised()) return Interrupted("while the models were loading");
  TANDEM_TRY(MeasureModels());
  if (interruption_.raised()) return Interrupted("before the load began");
  TANDEM_TRY(WhileBuilding());
  TANDEM_TRY(Alone());
  TANDEM_TRY(Unmanaged());
  TANDEM_TRY(BesideTraining());
  TANDEM_TRY(WithNewVersion());
  return Conclude();
}

Status DemoRun::LayOut() {
  const fs::path repository = scratch_.path() / "models";
  TANDEM_TRY(LayOutSamples(options_.samples, options_.models, repository));
  serve_.model_repository = {repository.string()};
  serve_.http_port = serve_.grpc_port = serve_.metrics_port = 0;
  serve_.exit_on_error = true;
  serve_.allow_training = options_.training;
  if (!options_.training) return {};

  const fs::path data = scratch_.path() / "data";
  const fs::path version = repository / kDigitsModel / "1";
  for (const fs::path& folder : {data, version}) TANDEM_TRY(MakeFolder(folder));
  TANDEM_TRY(WriteDigits(DrawDigits(kTrainingPictures, kTrainingSeed), data / kDataFile));
  TANDEM_TRY(WriteBytes(version / "model.onnx", UntrainedDigitsModel(kModelSeed)));
  // All that is held out goes into one request.
  TANDEM_TRY(WriteBytes(version.parent_path() / "config.pbtxt", Format("max_batch_size: {}\n", kHeldOutPictures)));
  serve_.data_root = data.string();
  serve_.state = (scratch_.path() / "state").string();
  serve_.colocation = options_.colocation;
  serve_.trainer = options_.trainer;
  serve_.training_attempts = 3;  // Who watches does not want to wait for more.
  return {};
}

void DemoRun::StartBuild() {
  if (!options_.training || options_.launcher.empty() || !options_.trainer.empty()) return;
  auto build = TrainerBuild::Start({options_.launcher, "build", "tandem-trainer"});
  if (build) {
    build_ = *std::move(build);
  } else {
    outcome_.not_trained = build.error().message;
  }
}

Status DemoRun::Serve() {
  TANDEM_ASSIGN(server_, Server::Start(serve_));
  TANDEM_TRY(LoadModels(*server_, interruption_));
  if (interruption_.raised()) return {};
  const ServerPorts& ports = server_->ports();
  const std::size_t count = options_.models.size() + (options_.training ? 1 : 0);
  const std::chrono::duration<double> ready = RealClock::Instance().Now() - start_;
  std::printf("Serving %zu model%s after %.1f s: REST on 127.0.0.1:%d, gRPC on 127.0.0.1:%d, metrics on 127.0.0.1:%d\n",
              count, count == 1 ? "" : "s", ready.count(), ports.http, ports.grpc, ports.metrics);

  TANDEM_ASSIGN(const auto client, ApiClient::Connect({.url = Format("http://127.0.0.1:{}", ports.http)}));
  std::vector<std::string> names;
  for (const std::string& name : options_.models) {
    TANDEM_ASSIGN(models_.emplace_back(), SampleModel(*client, name));
    names.push_back(name);
  }
  if (options_.training) {
    DigitPictures held_out = DrawDigits(kHeldOutPictures, kHeldOutSeed);
    models_.push_back({.name = kDigitsModel,
                       .inputs = {std::move(held_out.pictures)},
                       .keep_answers = true,
                       .most_rate = kMostDigitRequests});
    names.emplace_back(kDigitsModel);
    outcome_.served.emplace(std::move(held_out.labels));
  }
  view_ = std::make_unique<DemoView>(std::move(names));
  return {};
}

Status DemoRun::MeasureModels() {
  const int port = server_->ports().http;
  for (DemoModel& model : models_) {
    TANDEM_TRY(MeasureAlone(model, port, {.stop = &interruption_.flag()}));
    if (interruption_.raised()) return {};
    std::printf("  %-12s %6.1f ms alone\n", model.name.c_str(), Ms(model.alone));
  }
  TANDEM_ASSIGN(load_, PlanLoad(models_, options_.load, port));
  return {};
}

Status DemoRun::WhileBuilding() {
  if (!build_) return {};
  const MonotonicTime until = RealClock::Instance().Now() + kFirstSign;
  build_->Look();
  while (!build_->ended() && !build_->has_spoken() && RealClock::Instance().Now() < until && !interruption_.raised()) {
    std::this_thread::sleep_for(milliseconds(20));
    build_->Look();
  }
  if (!build_->ended()) {
    std::puts("The trainer is not ready yet; until it is, load comes without being measured");
    std::atomic<bool> built{false};
    Stage stage{.enough = &built, .lines = [&] { return std::vector<std::string>{BuildLine(build_->steps())}; }};
    stage.on_progress = [&](const auto&) {
      build_->Look();
      built = build_->ended();
    };
    TANDEM_TRY(Offer(stage, outcome_.building));
    if (interruption_.raised()) return {};
  }
  // What was measured beside it counts no more.
  if (outcome_.building || build_->has_spoken()) {
    std::puts("The build has ended; once more with nothing beside them");
    TANDEM_TRY(MeasureModels());
  }
  if (!build_->succeeded()) outcome_.not_trained = "the trainer could not be built: " + build_->Problem();
  return {};
}

Status DemoRun::Alone() {
  if (interruption_.raised()) return {};
  std::printf("Poisson arrivals for %.0f s at %.0f %% of the device's time; SLO %.0f ms\n", options_.seconds,
              100 * options_.load, Ms(*load_.models[0].slo));
  return Offer(
      {.duration = nanoseconds(std::llround(options_.seconds * 1e9)), .lines = [this] { return ServedLines(); }},
      outcome_.alone);
}

bool DemoRun::CanTrain() {
  if (!options_.training || interruption_.raised()) return false;
  const fs::path program = TrainerProgram(serve_);
  if (outcome_.not_trained.empty() && ::access(program.c_str(), X_OK) != 0) {
    outcome_.not_trained = Format("'{}' is missing; ./tandem build tandem-trainer makes it", program.string());
  }
  return outcome_.not_trained.empty();
}

Status DemoRun::Unmanaged() {
  if (!options_.compare || !CanTrain()) return {};
  // A process has one ONNX Runtime, and so one server at a time.
  server_.reset();
  TANDEM_TRY(OfferUnmanaged());
  if (interruption_.raised()) return {};
  TANDEM_ASSIGN(server_, Server::Start(serve_));
  TANDEM_TRY(LoadModels(*server_, interruption_));
  if (interruption_.raised()) return {};
  const ServerPorts& ports = server_->ports();
  std::printf("Serving again: REST on 127.0.0.1:%d, gRPC on 127.0.0.1:%d, metrics on 127.0.0.1:%d\n", ports.http,
              ports.grpc, ports.metrics);
  TANDEM_ASSIGN(load_, PlanLoad(models_, options_.load, ports.http));
  return {};
}

Status DemoRun::OfferUnmanaged() {
  const auto server = UnmanagedServer::Start(serve_, (scratch_.path() / "unmanaged").string(),
                                             DigitsJob(kDataFile, kStepsWithoutEnd, false), interruption_);
  if (!server) {
    std::printf("No comparison with training that nobody manages: %s\n", server.error().message.c_str());
    return {};
  }
  if (*server == nullptr) return {};
  std::printf("The same for %.0f s beside training as an equal of the requests, which nobody manages\n",
              options_.seconds);
  TANDEM_ASSIGN(loadgen::LoadSpec load, PlanLoad(models_, options_.load, (*server)->port()));
  const auto lines = [&] { return TrainingLines((*server)->Seen(), view_->columns()); };
  TANDEM_TRY(Offer({.duration = nanoseconds(std::llround(options_.seconds * 1e9)), .lines = lines, .load = &load},
                   outcome_.unmanaged));
  outcome_.unmanaged_rate = (*server)->Seen().steps_per_second;
  return {};
}

Status DemoRun::BesideTraining() {
  if (!CanTrain()) return {};
  auto training = DemoTraining::Submit(server_->ports().http, DigitsJob(kDataFile, options_.training_steps, true));
  if (!training) {
    outcome_.not_trained = training.error().message;
    return {};
  }
  training_ = *std::move(training);
  std::printf("The same, beside job %lld, which trains %s for %d steps on pictures that the demo has drawn\n",
              static_cast<long long>(training_->Seen().job.id), kDigitsModel, options_.training_steps);
  const auto lines = [this] {
    std::vector<std::string> all = TrainingLines(training_->Seen(), view_->columns());
    // In a pipe it would only repeat itself.
    if (view_->columns() > 0) all.push_back(ServedLine(*outcome_.served));
    return all;
  };
  const Status offered = Offer({.enough = &training_->decided(), .lines = lines}, outcome_.beside);
  outcome_.training = training_->Seen();
  // The last view may be older than the end.
  for (const std::string& line : TrainingLines(*outcome_.training, view_->columns())) std::puts(line.c_str());
  return offered;
}

Status DemoRun::WithNewVersion() {
  if (interruption_.raised() || !outcome_.training || outcome_.training->job.published_version.empty()) return {};
  const std::string& version = outcome_.training->job.published_version;
  std::puts("The load goes on");
  std::atomic<bool> enough{false};
  const std::int64_t number = std::atoll(version.c_str());
  Stage stage{.duration = kMostWithNewVersion, .enough = &enough, .lines = [this] { return ServedLines(); }};
  stage.on_progress = [&](const loadgen::LoadProgress& progress) {
    enough = progress.elapsed >= kWithNewVersion && outcome_.served->Of(number).answers >= kNewAnswers;
  };
  return Offer(stage, outcome_.after);
}

Status DemoRun::Offer(const Stage& stage, std::optional<loadgen::LoadReport>& report) {
  loadgen::LoadHooks hooks{.stop = &interruption_.flag(), .enough = stage.enough};
  hooks.on_progress = [&](const loadgen::LoadProgress& progress) {
    stage.on_progress(progress);
    view_->Update(progress, stage.lines(), stage.enough != nullptr);
    // Whoever read the output has gone.
    if (std::ferror(stdout) != 0) interruption_.Raise(SIGPIPE);
  };
  const bool judged = outcome_.served && stage.load == nullptr;
  if (judged) hooks.on_request = [this](const loadgen::JudgedRequest& request) { TakeAnswer(request); };
  loadgen::LoadSpec& load = stage.load != nullptr ? *stage.load : load_;
  load.duration = stage.duration;
  TANDEM_ASSIGN(report, loadgen::RunLoad(load, hooks));
  view_->Leave();
  return answers_;
}

std::vector<std::string> DemoRun::ServedLines() const {
  if (!outcome_.served) return {};
  return {ServedLine(*outcome_.served)};
}

void DemoRun::TakeAnswer(const loadgen::JudgedRequest& request) {
  const bool answered = request.outcome == loadgen::Outcome::kOk || request.outcome == loadgen::Outcome::kLate;
  if (!answered || request.model + 1 != models_.size()) return;
  const Status taken = outcome_.served->Take(request.record.body);
  if (!taken && answers_) answers_ = taken;
}

Result<int> DemoRun::Conclude() {
  outcome_.interrupted = interruption_.raised();
  std::printf("\n%s\n", DemoTable(outcome_).c_str());
  if (const std::string picture = DemoPicture(outcome_); !picture.empty()) std::printf("%s\n", picture.c_str());
  if (!options_.json_file.empty()) {
    const Status written = loadgen::WriteReportFile(options_.json_file, DemoJson(outcome_) + "\n");
    if (!written) return Fail(written.error().code, "--json {}", written.error().message);
  }
  const DemoVerdict verdict = JudgeDemo(outcome_);
  std::fputs(verdict.text.c_str(), stdout);
  if (interruption_.raised()) return interruption_.exit_code();
  return verdict.passed ? kDone : kFailed;
}

int DemoRun::Interrupted(const char* when) const {
  std::fprintf(stderr, "tandem demo: interrupted %s\n", when);
  return interruption_.exit_code();
}

}  // namespace tandem::cli
