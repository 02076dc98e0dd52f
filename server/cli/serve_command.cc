#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "api/base/thread_name.h"
#include "server/cli/command.h"
#include "server/lifecycle/server.h"
#include "server/log/log.h"

namespace tandem::cli {
namespace {

constexpr const char* kConfigVariable = "TANDEM_CONFIG";

// What Startup sends to this process when it has ended. From anybody else it says nothing.
constexpr int kStartupEnded = SIGUSR1;

// What was learnt in between is lost when the process is killed.
constexpr timespec kLookAfterEvery{.tv_sec = 60, .tv_nsec = 0};

sigset_t HandledSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kStartupEnded}) ::sigaddset(&set, signal);
  return set;
}

int Complain(const Error& error) {
  LogAsIs("tandem serve: " + error.message);
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

// Ends the process without waiting for anything in it, and not for long for the reader of the log.
[[noreturn]] void Leave(std::string_view why, int exit_code) {
  LogWarning(why);
  FlushLog(std::chrono::milliseconds(100));
  ::_exit(exit_code);
}

// Sees to it that a server which has been told to stop does: from when it is made until it goes, a further SIGTERM or
// SIGINT ends the process at once, and so does the time `until`.
class Impatience {
 public:
  Impatience(const sigset_t& signals, MonotonicTime until)
      : thread_([&signals, until](const std::stop_token& stop) {
          const timespec tick{.tv_sec = 0, .tv_nsec = 20'000'000};
          while (!stop.stop_requested()) {
            const int signal = ::sigtimedwait(&signals, nullptr, &tick);
            if (signal == SIGTERM || signal == SIGINT) Leave("second signal: leaving at once", kFailed);
            if (RealClock::Instance().Now() >= until) Leave("the server does not stop; leaving without it", kFailed);
          }
        }) {}

 private:
  const std::jthread thread_;
};

// Starts the server and loads its models on a thread of its own, so that signals are heard meanwhile.
class Startup {
 public:
  explicit Startup(const ServeOptions& options)
      : thread_([this, &options] {
          NameThread("startup");
          auto server = Server::Start(options);
          const Status started = server ? Status() : Status(std::unexpected(server.error()));
          if (started) server_ = *std::move(server);
          started_promise_.set_value();
          promise_.set_value(started ? server_->LoadModels() : started);
          ::kill(::getpid(), kStartupEnded);
        }) {}

  // Whether the server listens within that time, or never will.
  [[nodiscard]] bool StartsWithin(std::chrono::milliseconds time) const {
    return started_.wait_for(time) == std::future_status::ready;
  }
  // Whether all of it ends within that time.
  [[nodiscard]] bool EndsWithin(std::chrono::milliseconds time) const {
    return result_.wait_for(time) == std::future_status::ready;
  }
  // How it ended; waits for that.
  [[nodiscard]] const Status& result() const { return result_.get(); }

  // Once it has started; null when it could not.
  [[nodiscard]] Server* server() { return server_.get(); }
  // Once all of it has ended.
  void DestroyServer() { server_.reset(); }

 private:
  // Of the thread until it has started, then of whoever owns this object.
  std::unique_ptr<Server> server_;
  std::promise<void> started_promise_;
  const std::shared_future<void> started_ = started_promise_.get_future().share();
  std::promise<Status> promise_;
  const std::shared_future<Status> result_ = promise_.get_future().share();
  const std::jthread thread_;  // Last: it uses the above.
};

// Puts every item of a configuration file into the section of `serve`.
class ServeSection final : public CLI::ConfigBase {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = ConfigBase::from_config(input);
    for (CLI::ConfigItem& item : items) item.parents.insert(item.parents.begin(), "serve");
    return items;
  }
};

// CLI11 drops a value from the environment that it cannot use; an option given wrongly must not look like one not
// given. An empty variable is as none, but not where that would take protection away.
void RefuseBadEnvironment(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const char* value = option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
    if (value == nullptr || option->count() > 0) continue;
    if (*value != '\0' || option->get_group() == kTrustGroup) {
      throw CLI::ValidationError(option->get_envname(),
                                 "the value '" + std::string(value) + "' is not valid for " + option->get_name());
    }
  }
}

// Lets requests under way finish, and what is being loaded, until the time for it is over. What a client was promised
// and did not get makes it a failure.
int Stop(Startup& startup, const sigset_t& signals, const ServeOptions& options) {
  // For what cannot be interrupted to end after it was told to.
  constexpr std::chrono::milliseconds kGrace(4000);
  const RealClock& clock = RealClock::Instance();
  const MonotonicTime until = clock.Now() + std::chrono::milliseconds(std::llround(options.drain_secs * 1000));
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.Now()));
  };
  LogInfo("draining: requests under way finish, new ones are refused");
  const Impatience impatience(signals, until + kGrace);
  // Until it has started nobody was promised anything.
  if (!startup.StartsWithin(kGrace / 2)) Leave("stopped before the server had started", kDone);
  Server* const server = startup.server();
  if (server == nullptr) return Complain(startup.result().error());
  server->BeginDrain();
  const bool drained = server->WaitDrained(left());
  if (!drained) LogWarning("drain time is over; requests under way are dropped");
  if (!startup.EndsWithin(left() + kGrace / 2)) {
    Leave("drain time is over; leaving without the model that is still loading", kFailed);
  }
  startup.DestroyServer();
  LogInfo("stopped");
  return drained ? kDone : kFailed;
}

int Serve(const ServeOptions& options) {
  const auto level = ParseLogLevel(options.log_level);
  if (!level) return Complain(level.error());
  const auto format = ParseLogFormat(options.log_format);
  if (!format) return Complain(format.error());
  SetUpLog(*level, *format);

  // Blocked before any thread starts, so that all inherit it and only this thread hears them.
  const sigset_t signals = HandledSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  Startup startup(options);
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT) {
    signal = ::sigtimedwait(&signals, nullptr, &kLookAfterEvery);
    if (signal < 0 && startup.EndsWithin({}) && startup.server() != nullptr) {
      startup.server()->SaveRuns();
      startup.server()->LookAtCores();
    }
    // Before the start is over, the repository has not been looked at yet.
    if (signal == SIGHUP && startup.StartsWithin({}) && startup.server() != nullptr) startup.server()->Rescan();
    if (signal == kStartupEnded && startup.EndsWithin({}) && !startup.result()) {
      return Complain(startup.result().error());
    }
  }
  return Stop(startup, signals, options);
}

}  // namespace

void ReadServeOptionsFromFile(CLI::App& app) {
  app.config_formatter(std::make_shared<ServeSection>());
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "File with options of serve (TOML)")->envname(kConfigVariable);
}

void AddServeCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Serve the models of a repository over REST and gRPC");
  auto options = std::make_shared<ServeOptions>();
  AddServeFlags(*command, *options);
  command->fallthrough();
  command->footer(
      "Every option can also be set in the environment (--http-port is TANDEM_HTTP_PORT) and in a file\n"
      "(--config FILE or TANDEM_CONFIG; TOML: http-port = 8000). The command line comes first, then the\n"
      "file, then the environment.\n"
      "Examples:\n"
      "  tandem serve --model-repository models\n"
      "  tandem serve --model-repository models --model-control-mode explicit --load-model '*'\n"
      "  tandem serve --model-repository models --default-slo-ms 50 --log-format json");
  // CLI11 passes over a file that only the environment names and that cannot be read, unless there must be one.
  command->preparse_callback([&app](std::size_t) {
    const char* file = std::getenv(kConfigVariable);
    if (file != nullptr && *file != '\0') app.get_config_ptr()->required();
  });
  command->callback([command, options, &exit_code] {
    RefuseBadEnvironment(*command);
    exit_code = Serve(*options);
    FlushLog();
  });
}

}  // namespace tandem::cli
