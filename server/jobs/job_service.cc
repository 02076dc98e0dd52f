#include "server/jobs/job_service.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <format>
#include <fstream>
#include <system_error>
#include <type_traits>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/base/thread_name.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "api/wire/training_job_json.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/submission_check.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

// Of a page, whose reasons to wait are told in full.
constexpr std::size_t kMostInDetail = 50;

Result<LogPiece> ReadLog(const JobFolder& folder, std::uint64_t offset, bool job_ended) {
  LogPiece piece{.text = {}, .next = offset, .ended = job_ended};
  std::ifstream in(LogFile(folder.path), std::ios::binary | std::ios::ate);
  if (!in) return piece;  // No trainer was started yet.
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(0, in.tellg()));
  if (offset >= size) return piece;
  piece.text.resize(std::min<std::uint64_t>(size - offset, JobService::kMaxLogPiece));
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(piece.text.data(), static_cast<std::streamsize>(piece.text.size()));
  piece.text.resize(static_cast<std::size_t>(in.gcount()));
  piece.next = offset + piece.text.size();
  piece.ended = job_ended && piece.next >= size;
  return piece;
}

// Whoever started this process may have had it ignored: then trainers would end unseen, and their numbers be others'.
void HearOfChildren() {
  struct sigaction current{};
  if (::sigaction(SIGCHLD, nullptr, &current) == 0 && current.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

JobService::JobService(JobOptions options, repository::ModelRepository& repository, const Clock& clock)
    : options_(std::move(options)),
      repository_(repository),
      clock_(clock),
      publisher_(repository, options_.repositories),
      metrics_(clock) {}

Result<std::unique_ptr<JobService>> JobService::Start(JobOptions options, repository::ModelRepository& repository,
                                                      const Clock& clock) {
  HearOfChildren();
  std::unique_ptr<JobService> service(new JobService(std::move(options), repository, clock));
  std::error_code ec;
  fs::create_directories(service->options_.state / "jobs", ec);
  if (ec) return Invalid("--state '{}' cannot be made: {}", service->options_.state.string(), ec.message());
  TANDEM_ASSIGN(service->store_, JobStore::Open(service->options_.state, clock));
  service->wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (service->wake_fd_ < 0) return Fail(ErrorCode::kInternal, "no event descriptor for training jobs can be had");
  service->supervisor_ = std::make_unique<Supervisor>(
      service->options_, *service->store_, service->metrics_, clock,
      [owner = service.get()](const JobRecord& record, const TrainingJob& job) { owner->PublishDue(record, job); });
  TANDEM_TRY(service->supervisor_->Recover());
  service->CountStates();
  service->publishing_ = std::make_unique<BulkThread>("publish");
  service->estimating_ = std::make_unique<BulkThread>("estimate");
  service->thread_ = std::thread([owner = service.get()] { owner->Run(); });
  return service;
}

JobService::~JobService() {
  draining_.store(true);
  // What is being published ends first: its last word goes to the jobs thread.
  if (publishing_) publishing_->Stop();
  if (estimating_) estimating_->Stop();
  if (thread_.joinable()) {
    Post([this] {
      const MutexLock lock(mu_);
      ending_ = true;
    });
    thread_.join();
  }
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void JobService::Post(Work work) {
  {
    const MutexLock lock(mu_);
    work_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

void JobService::RunWork() {
  std::deque<Work> work;
  {
    const MutexLock lock(mu_);
    work.swap(work_);
  }
  for (Work& one : work) one();
}

void JobService::TurnFollowers() {
  next_turn_.reset();
  const auto over = [this](auto& follower) {
    const NextTurn next = follower();
    if (next) next_turn_ = std::min(next_turn_.value_or(*next), *next);
    return !next;
  };
  follower_count_.fetch_sub(static_cast<int>(std::erase_if(followers_, over)));
}

void JobService::Wait() {
  std::vector<pollfd> polled = {{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  for (const int fd : supervisor_->fds()) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  std::optional<std::chrono::milliseconds> wait = supervisor_->UntilDue();
  if (next_turn_) wait = std::min(wait.value_or(*next_turn_), *next_turn_);
  ::poll(polled.data(), polled.size(), wait ? static_cast<int>(wait->count()) : -1);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_fd_, &count, sizeof count);
}

void JobService::Run() {
  NameThread("jobs");
  for (;;) {
    RunWork();
    {
      const MutexLock lock(mu_);
      if (ending_) break;
    }
    supervisor_->Turn();
    CountStates();
    drained_.store(draining_.load() && supervisor_->drained());
    TurnFollowers();
    Wait();
  }
  // Here, because trainers end with the thread that started them.
  supervisor_.reset();
  followers_.clear();
}

Result<JobStore::Submitted> JobService::SubmitNow(const Submission& submission) {
  TANDEM_ASSIGN(const TrainingSource source, CheckSubmission(submission.job, options_, repository_));
  TANDEM_TRY(supervisor_->CheckEverFits(submission.job, source.model));
  TANDEM_ASSIGN(JobStore::Submitted submitted, store_->Submit({.name = submission.job.name,
                                                               .owner = submission.owner,
                                                               .idempotency_key = submission.idempotency_key,
                                                               .spec = JsonLine(TrainingJobToJson(submission.job)),
                                                               .model = submission.job.model,
                                                               .model_version = source.version,
                                                               .priority = submission.job.priority}));
  if (!submitted.is_new) return submitted;
  const Status taken = JobFolder::Of(options_.state, submitted.job.id).TakeModel(source.model);
  if (!taken) {
    // A job without its model would only fail later.
    TANDEM_TRY(store_->Transition(submitted.job.id, JobAction::kFail, {.reason = taken.error().message}));
    return std::unexpected(taken.error());
  }
  return submitted;
}

void JobService::Submit(Submission submission, Done<JobStore::Submitted> done) {
  Ask<JobStore::Submitted>(true, std::move(done),
                           [this, submission = std::move(submission)] { return SubmitNow(submission); });
}

void JobService::Get(JobId id, Done<JobRecord> done) {
  Ask<JobRecord>(false, std::move(done), [this, id] { return GetNow(id); });
}

void JobService::List(JobQuery query, Done<JobPage> done) {
  Ask<JobPage>(false, std::move(done), [this, query = std::move(query)] {
    auto page = store_->List(query);
    if (!page) return page;
    for (std::size_t i = 0; i < page->jobs.size(); ++i) {
      page->jobs[i] = supervisor_->Explained(std::move(page->jobs[i]), i < kMostInDetail);
    }
    return page;
  });
}

void JobService::Pause(JobId id, Done<JobRecord> done) {
  Ask<JobRecord>(true, std::move(done), [this, id] { return supervisor_->Pause(id); });
}

void JobService::Resume(JobId id, Done<JobRecord> done) {
  Ask<JobRecord>(true, std::move(done), [this, id] { return supervisor_->Resume(id); });
}

void JobService::Cancel(JobId id, Done<JobRecord> done) {
  Ask<JobRecord>(true, std::move(done), [this, id] { return supervisor_->Cancel(id); });
}

void JobService::Delete(JobId id, Done<void> done) {
  Ask<void>(true, std::move(done), [this, id]() -> Status {
    TANDEM_TRY(CheckNotBusy(id));
    TANDEM_TRY(store_->Delete(id));
    metrics_.Forget(id);
    std::error_code ec;
    fs::remove_all(JobFolder::Of(options_.state, id).path, ec);
    if (ec) LogWarning("the files of a deleted job are left", {{"job", std::to_string(id)}, {"reason", ec.message()}});
    return {};
  });
}

void JobService::Checkpoints(JobId id, Done<std::vector<CheckpointRecord>> done) {
  Ask<std::vector<CheckpointRecord>>(false, std::move(done), [this, id]() -> Result<std::vector<CheckpointRecord>> {
    TANDEM_TRY(store_->Get(id));
    return store_->Checkpoints(id);
  });
}

void JobService::Series(JobId id, Done<std::map<std::string, std::vector<SeriesPoint>>> done) {
  using Map = std::map<std::string, std::vector<SeriesPoint>>;
  Ask<Map>(false, std::move(done), [this, id]() -> Result<Map> {
    TANDEM_TRY(store_->Get(id));
    return store_->Series(id);
  });
}

void JobService::Profile(JobId id, Done<Json::Value> done) {
  Ask<Json::Value>(false, std::move(done), [this, id] { return supervisor_->Profile(id); });
}

void JobService::Beside(std::string model, Done<Json::Value> done) {
  Ask<Json::Value>(false, std::move(done), [this, model = std::move(model)] { return supervisor_->Beside(model); });
}

void JobService::OpsSince(MonotonicTime since, Done<std::vector<RecentOps>> done) {
  Ask<std::vector<RecentOps>>(false, std::move(done), [this, since] { return supervisor_->OpsSince(since); });
}

Result<JobRecord> JobService::GetNow(JobId id) const {
  TANDEM_ASSIGN(JobRecord job, store_->Get(id));
  return supervisor_->Explained(std::move(job));
}

Result<std::vector<JobEvent>> JobService::EventsNow(std::optional<JobId> id, std::int64_t after, int limit) const {
  if (id) TANDEM_TRY(store_->Get(*id));
  return store_->EventsAfter(id, after, limit);
}

Result<LogPiece> JobService::LogNow(JobId id, std::uint64_t offset) const {
  TANDEM_ASSIGN(const JobRecord job, store_->Get(id));
  return ReadLog(JobFolder::Of(options_.state, id), offset, HasEnded(job.state));
}

Result<fs::path> JobService::ModelNow(JobId id) const {
  TANDEM_ASSIGN(const JobRecord job, store_->Get(id));
  if (job.state == JobState::kSucceeded) return JobFolder::Of(options_.state, id).result();
  return Fail(ErrorCode::kConflict, "the job is {}; only one that has succeeded has a trained model",
              JobStateName(job.state));
}

bool JobService::Follow(std::move_only_function<NextTurn()> work) {
  if (follower_count_.fetch_add(1) >= kMaxFollowers) {
    follower_count_.fetch_sub(1);
    return false;
  }
  Post([this, work = std::move(work)]() mutable { followers_.push_back(std::move(work)); });
  return true;
}

void JobService::BeginDrain() {
  draining_.store(true);
  Post([this] { supervisor_->BeginDrain(); });
}

bool JobService::WaitDrained(std::chrono::milliseconds patience) {
  const MonotonicTime until = clock_.Now() + patience;
  while (!drained_.load()) {
    if (clock_.Now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace tandem::jobs
