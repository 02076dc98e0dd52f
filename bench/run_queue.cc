#include "bench/run_queue.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "api/base/format.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

// Empty when it cannot be read.
std::string TextOf(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

}  // namespace

std::optional<ThreadWait> ParseSchedstat(std::string_view text) {
  const auto on_core = TakeNumber(text);
  const auto waited = TakeNumber(text);
  const auto slices = TakeNumber(text);
  if (!on_core || !waited || !slices) return std::nullopt;
  return ThreadWait{.waited = std::chrono::nanoseconds(*waited), .slices = *slices};
}

bool AnswersRequests(std::string_view thread_name) {
  return thread_name == "ort-pool" || thread_name.starts_with("worker-") || thread_name.starts_with("http-");
}

std::chrono::nanoseconds LongestDelay(const std::vector<ThreadWait>& before, const std::vector<ThreadWait>& after) {
  std::chrono::nanoseconds longest{0};
  for (const ThreadWait& now : after) {
    const auto then = std::ranges::find(before, now.thread, &ThreadWait::thread);
    if (then != before.end()) longest = std::max(longest, now.waited - then->waited);
  }
  return longest;
}

Result<RunQueueWatch> RunQueueWatch::Of(pid_t server) {
  std::vector<std::int64_t> threads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Format("/proc/{}/task", server), error)) {
    std::string name = TextOf(entry.path() / "comm");
    if (name.ends_with('\n')) name.pop_back();
    if (AnswersRequests(name)) threads.push_back(std::stoll(entry.path().filename().string()));
  }
  if (error) return Fail(ErrorCode::kUnavailable, "the threads of process {}: {}", server, error.message());
  if (threads.empty()) return Fail(ErrorCode::kUnavailable, "process {} has no threads for requests", server);
  RunQueueWatch watch(server, std::move(threads));
  TANDEM_TRY(watch.Look());
  return watch;
}

Result<std::vector<ThreadWait>> RunQueueWatch::Look() const {
  std::vector<ThreadWait> waits;
  for (const std::int64_t thread : threads_) {
    const std::string file = Format("/proc/{}/task/{}/schedstat", server_, thread);
    auto wait = ParseSchedstat(TextOf(file));
    if (!wait) return Fail(ErrorCode::kUnavailable, "'{}' tells nothing", file);
    wait->thread = thread;
    waits.push_back(*wait);
  }
  return waits;
}

}  // namespace tandem::bench
