// The kinds "training_pause" and "training_start".

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "bench/interleave.h"
#include "bench/synthetic_job.h"
#include "bench/training/network_job.h"
#include "bench/training_kinds.h"
#include "bench/training_side.h"
#include "server/cli/api_client.h"
#include "server/jobs/trainer_process.h"
#include "server/trainer/run_file.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kMostTimes = 1000;
constexpr auto kPatience = 60s;
constexpr auto kLook = 20us;
constexpr auto kPoll = 2ms;

// Seconds until the condition holds.
Result<double> TimeUntil(const std::function<Result<bool>()>& condition, std::chrono::nanoseconds look,
                         const char* what) {
  const Clock& clock = RealClock::Instance();
  const MonotonicTime began = clock.Now();
  while (true) {
    TANDEM_ASSIGN(const bool holds, condition());
    const auto passed = clock.Now() - began;
    if (holds) return std::chrono::duration<double>(passed).count();
    if (passed > kPatience) return Fail(ErrorCode::kInternal, "waited in vain: {}", what);
    std::this_thread::sleep_for(look);
  }
}

// A real trainer, as the server starts it.
Result<std::unique_ptr<jobs::TrainerProcess>> StartTrainer(const BenchContext& context, const TrainedNetwork& trained) {
  TANDEM_ASSIGN(const auto setup, SetupFolder(context, trained.network));
  TANDEM_ASSIGN(const Network network, FindNetwork(trained.network));
  TrainerRun run;
  run.job = NetworkJob(network, trained.batch);
  run.model = setup / kModelFile;
  run.folder = context.work / ("trainer-" + trained.network);
  run.data_root = setup;
  run.threads = context.threads;
  std::error_code ec;
  std::filesystem::create_directories(run.folder, ec);
  TANDEM_TRY(WriteRunFile(run, run.folder / "run.json"));
  return jobs::TrainerProcess::Start({.program = context.program.parent_path() / kTrainerProgram,
                                      .run_file = run.folder / "run.json",
                                      .folder = run.folder,
                                      .memory = {},
                                      .rank = TrainerClass::kNormal,
                                      .cores = {}});
}

class TrainingPause final : public Measurement {
 public:
  TrainingPause(TrainedNetwork trained, int times) : trained_(std::move(trained)), times_(times) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"pause", "resume", "longest_op"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  // The longest of a round.
  [[nodiscard]] Result<Figures> Round(jobs::TrainerProcess& trainer, std::mt19937_64& random, double step) const;

  const TrainedNetwork trained_;
  const int times_;
};

Result<Figures> TrainingPause::Round(jobs::TrainerProcess& trainer, std::mt19937_64& random, double step) const {
  std::uniform_real_distribution<double> moment(0, 2 * step);
  Figures longest{{"pause", 0}, {"resume", 0}};
  for (int i = 0; i < times_; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
    trainer.board().Set(Permit::kHold, RealClock::Instance().Now());
    const auto held = [&]() -> Result<bool> { return trainer.board().Signs().held; };
    TANDEM_ASSIGN(const double pause, TimeUntil(held, kLook, "the trainer waits"));
    const std::uint64_t ops = trainer.board().Signs().ops;
    trainer.board().Set(Permit::kRun, RealClock::Instance().Now());
    const auto goes_on = [&]() -> Result<bool> { return trainer.board().Signs().ops != ops; };
    TANDEM_ASSIGN(const double resume, TimeUntil(goes_on, kLook, "the trainer goes on"));
    longest["pause"] = std::max(longest["pause"], pause);
    longest["resume"] = std::max(longest["resume"], resume);
  }
  return longest;
}

Result<SeriesMap> TrainingPause::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const std::string what = Format("pauses of {}", trained_.network);
  context.say(what);
  const double window = std::chrono::duration<double>(context.pace.window).count();
  std::vector<Turn> turns;
  {
    TANDEM_ASSIGN(const auto side, TrainingSide::Start(context, "tandem", trained_, 0));
    for (int round = 0; round < context.pace.rounds; ++round) {
      TANDEM_TRY(context.CheckStop());
      TANDEM_ASSIGN(const Turn turn, side->Take(window, std::numeric_limits<std::int32_t>::max()));
      turns.push_back(turn);
    }
  }
  TANDEM_ASSIGN(const auto trainer, StartTrainer(context, trained_));
  const std::uint64_t enough = 1000;  // Of operators: the first step is behind it.
  TANDEM_TRY(
      TimeUntil([&]() -> Result<bool> { return trainer->board().Signs().ops > enough; }, 1ms, "the trainer trains"));
  std::mt19937_64 random(1);
  const double step = turns.front().seconds / static_cast<double>(turns.front().steps);
  TANDEM_ASSIGN(
      SeriesMap sampled,
      Interleave(context, what, {{.name = "trainer", .sample = [&] { return Round(*trainer, random, step); }}}));
  SeriesMap series{{"pause", std::move(sampled["trainer.pause"])}, {"resume", std::move(sampled["trainer.resume"])}};
  for (const Turn& turn : turns) series["longest_op"].samples.push_back(turn.longest_op);
  return series;
}

class TrainingStart final : public Measurement {
 public:
  TrainingStart(std::string model, int batch) : model_(std::move(model)), batch_(batch) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"first_step", "pause_call", "resume_call"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  [[nodiscard]] Result<Figures> Round(cli::ApiClient& client) const;

  const std::string model_;
  const int batch_;
};

Result<Figures> TrainingStart::Round(cli::ApiClient& client) const {
  const std::string spec = SyntheticJob(ModelName(model_), batch_);
  Figures figures;
  const MonotonicTime began = RealClock::Instance().Now();
  TANDEM_ASSIGN(const Json::Value job, client.Post("/v2/train/jobs", spec));
  const std::string path = "/v2/train/jobs/" + job["id"].asString();
  const auto stepped = [&]() -> Result<bool> {
    TANDEM_ASSIGN(const Json::Value now, client.Get(path));
    const std::string state = now["state"].asString();
    if (state == "failed") return Fail(ErrorCode::kInternal, "the job failed: {}", now["reason"].asString());
    return now["progress"]["step"].asInt64() > 0;
  };
  TANDEM_TRY(TimeUntil(stepped, kPoll, "the first step"));
  figures["first_step"] = std::chrono::duration<double>(RealClock::Instance().Now() - began).count();
  for (const char* call : {"pause", "resume"}) {
    const MonotonicTime asked = RealClock::Instance().Now();
    TANDEM_TRY(client.Post(path + "/" + call, ""));
    figures[std::string(call) + "_call"] = std::chrono::duration<double>(RealClock::Instance().Now() - asked).count();
  }
  TANDEM_TRY(client.Post(path + "/cancel", ""));
  const auto gone = [&]() -> Result<bool> {
    TANDEM_ASSIGN(const Json::Value now, client.Get(path));
    return now["state"].asString() == "cancelled";
  };
  TANDEM_TRY(TimeUntil(gone, kPoll, "the job is cancelled"));
  return figures;
}

Result<SeriesMap> TrainingStart::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  context.say("first step of a job");
  TANDEM_ASSIGN(const auto server, StartServer(context, model_));
  TANDEM_ASSIGN(const auto client,
                cli::ApiClient::Connect({.url = Format("http://127.0.0.1:{}", server->http_port())}));
  TANDEM_ASSIGN(SeriesMap sampled,
                Interleave(context, "first step", {{.name = "job", .sample = [&] { return Round(*client); }}}));
  SeriesMap series;
  for (const std::string& name : this->series()) series[name] = std::move(sampled["job." + name]);
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseTrainingPause(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(TrainedNetwork trained, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(const int times, fields.Whole("times", 1, kMostTimes));
  return std::make_unique<TrainingPause>(std::move(trained), times);
}

Result<std::unique_ptr<Measurement>> ParseTrainingStart(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::string model, fields.Text("model"));
  TANDEM_ASSIGN(const int batch, fields.Whole("batch", 1, 1024));
  return std::make_unique<TrainingStart>(std::move(model), batch);
}

}  // namespace tandem::bench
