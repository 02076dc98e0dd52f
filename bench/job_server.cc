#include "bench/job_server.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"
#include "bench/training/network_job.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJobs = 64;
constexpr int kMostSteps = 1'000'000;
constexpr std::int64_t kWithoutEnd = 1'000'000'000;

// A repository with the model, under the network's own name.
Result<fs::path> RepositoryOf(const BenchContext& context, const std::string& network) {
  TANDEM_ASSIGN(const fs::path folder, SetupFolder(context, network));
  fs::path repository = context.work / "repository-of-jobs" / network;
  const fs::path version = repository / network / "1";
  std::error_code error;
  fs::create_directories(version, error);
  if (!error) fs::copy_file(folder / kModelFile, version / "model.onnx", fs::copy_options::skip_existing, error);
  if (error) return Fail(ErrorCode::kInternal, "'{}' cannot be filled: {}", version.string(), error.message());
  return repository;
}

// Its part of what it shares with others; 0 for a process that has gone.
std::uint64_t ProportionalBytes(const std::string& process) {
  std::ifstream in("/proc/" + process + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Pss:")) continue;
    return std::stoull(line.substr(4)) * 1024;
  }
  return 0;
}

std::vector<std::string> ChildrenOf(const std::string& process) {
  std::vector<std::string> children;
  std::error_code error;
  for (const auto& thread : fs::directory_iterator("/proc/" + process + "/task", error)) {
    std::ifstream in(thread.path() / "children");
    for (std::string child; in >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

Result<std::vector<JobMix>> ParseJobMixes(JsonFields& fields, bool ending) {
  TANDEM_ASSIGN(std::vector<JsonFields> objects, fields.Objects("jobs"));
  std::vector<JobMix> mixes;
  int jobs = 0;
  for (JsonFields& object : objects) {
    JobMix mix;
    TANDEM_ASSIGN(mix.trained, ParseTrainedNetwork(object));
    TANDEM_ASSIGN(mix.count, object.WholeOr("count", 1, kMostJobs, 1));
    mix.steps = kWithoutEnd;
    if (ending) {
      TANDEM_ASSIGN(mix.steps, object.Whole("steps", 1, kMostSteps));
    }
    TANDEM_TRY(object.Finish());
    jobs += mix.count;
    mixes.push_back(std::move(mix));
  }
  if (jobs < 2 || jobs > kMostJobs) {
    return Invalid("{}: there must be 2 to {} jobs, not {}", fields.At("jobs"), kMostJobs, jobs);
  }
  return mixes;
}

Result<std::unique_ptr<JobServer>> JobServer::Start(const BenchContext& context, const std::vector<JobMix>& mixes,
                                                    std::vector<std::string> flags) {
  int jobs = 0;
  std::map<std::string, fs::path> repositories;
  for (const JobMix& mix : mixes) {
    jobs += mix.count;
    TANDEM_ASSIGN(repositories[mix.trained.network], RepositoryOf(context, mix.trained.network));
  }
  flags.insert(flags.end(), {"--data-root", context.work, "--max-training-jobs", std::to_string(jobs)});
  for (const auto& [network, repository] : repositories) {
    flags.insert(flags.end(), {"--model-repository", repository.string()});
  }
  std::unique_ptr<JobServer> made(new JobServer(context));
  TANDEM_ASSIGN(made->server_, StartServer(context, "", std::move(flags)));
  TANDEM_ASSIGN(made->client_,
                cli::ApiClient::Connect({.url = Format("http://127.0.0.1:{}", made->server_->http_port())}));
  return made;
}

Result<std::vector<std::int64_t>> JobServer::Submit(const std::vector<JobMix>& mixes) {
  std::vector<std::int64_t> numbers;
  for (const JobMix& mix : mixes) {
    TANDEM_ASSIGN(const Network network, FindNetwork(mix.trained.network));
    TANDEM_ASSIGN(const fs::path folder, SetupFolder(context_, mix.trained.network));
    TrainingJob wanted = NetworkJob(network, mix.trained.batch);
    wanted.model = network.name;
    wanted.data.path = folder.filename() / kDataFile;
    wanted.steps = mix.steps;
    for (int i = 0; i < mix.count; ++i) {
      TANDEM_ASSIGN(const Json::Value job, client_->Post("/v2/train/jobs", JsonLine(TrainingJobToJson(wanted))));
      numbers.push_back(job["id"].asInt64());
    }
  }
  return numbers;
}

Status JobServer::Tell(const std::vector<std::int64_t>& jobs, const char* what) const {
  for (const std::int64_t job : jobs) TANDEM_TRY(client_->Post(Format("/v2/train/jobs/{}/{}", job, what), ""));
  return {};
}

Result<std::map<std::int64_t, std::string>> JobServer::States() const {
  TANDEM_ASSIGN(const Json::Value page, client_->Get("/v2/train/jobs?limit=1000"));
  std::map<std::int64_t, std::string> states;
  for (const Json::Value& job : page["jobs"]) {
    const std::string state = job["state"].asString();
    if (state == "failed") {
      return Fail(ErrorCode::kInternal, "job {} failed: {}", job["id"].asInt64(), job["reason"].asString());
    }
    states[job["id"].asInt64()] = state;
  }
  return states;
}

Result<std::uint64_t> JobServer::HeldBytes() const {
  const std::string server = std::to_string(server_->pid());
  std::uint64_t held = ProportionalBytes(server);
  if (held == 0) return Fail(ErrorCode::kInternal, "what the server holds cannot be read");
  for (const std::string& child : ChildrenOf(server)) held += ProportionalBytes(child);
  return held;
}

}  // namespace tandem::bench
