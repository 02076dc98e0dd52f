#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"

namespace tandem::cli {

// How far a build has come.
struct BuildSteps {
  int done = 0;
  int total = 0;

  friend bool operator==(const BuildSteps&, const BuildSteps&) = default;
};

// From a line as Ninja prints it: "[12/61] Building CXX object …".
[[nodiscard]] std::optional<BuildSteps> ReadBuildSteps(std::string_view line);

// A build that goes on beside the demo, behind everybody else for the CPU, in a process group of its own so that Ctrl-C
// is for us alone. It is ended with this object, and when this process dies. Used by one thread, which must live as
// long as the build should.
class TrainerBuild {
 public:
  // `words`: the program and its arguments.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBuild>> Start(std::vector<std::string> words);
  ~TrainerBuild();
  TrainerBuild(const TrainerBuild&) = delete;
  TrainerBuild& operator=(const TrainerBuild&) = delete;

  // Takes in what has happened since; does not wait.
  void Look();

  [[nodiscard]] bool ended() const { return exit_code_.has_value(); }
  [[nodiscard]] bool succeeded() const { return exit_code_ == 0; }
  // It has said something, and so has something to do.
  [[nodiscard]] bool has_spoken() const { return has_spoken_; }
  [[nodiscard]] const std::optional<BuildSteps>& steps() const { return steps_; }
  // Why it failed, and where that is written down, in its own words; once it has.
  [[nodiscard]] std::string Problem() const;

 private:
  static constexpr std::size_t kKeptBytes = 8 * 1024;

  TrainerBuild(pid_t pid, int output) : pid_(pid), output_(output) {}
  void Read();

  const pid_t pid_;
  const int output_;
  std::string said_;  // The end of it.
  bool has_spoken_ = false;
  std::optional<BuildSteps> steps_;
  std::optional<int> exit_code_;
};

}  // namespace tandem::cli
