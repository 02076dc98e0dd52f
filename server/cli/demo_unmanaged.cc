#include "server/cli/demo_unmanaged.h"

#include <chrono>
#include <thread>
#include <utility>

#include "api/base/clock.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kLook{20};

}  // namespace

Result<std::unique_ptr<UnmanagedServer>> UnmanagedServer::Start(ServeOptions options, const std::string& state,
                                                                const std::string& job,
                                                                const Interruption& interruption) {
  options.colocation = "none";
  options.state = state;
  std::unique_ptr<UnmanagedServer> made(new UnmanagedServer());
  TANDEM_ASSIGN(made->server_, Server::Start(options));
  TANDEM_TRY(made->server_->LoadModels());
  TANDEM_ASSIGN(made->training_, DemoTraining::Submit(made->port(), job));
  const MonotonicTime until = RealClock::Instance().Now() + kPatience;
  while (made->Seen().job.step == 0) {
    if (interruption.raised()) return nullptr;
    if (made->Seen().decided) return Fail(ErrorCode::kInternal, "{}", made->Seen().problem);
    if (RealClock::Instance().Now() > until) return Fail(ErrorCode::kInternal, "its job makes no step");
    std::this_thread::sleep_for(kLook);
  }
  return made;
}

}  // namespace tandem::cli
