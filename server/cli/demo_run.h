#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "loadgen/run.h"
#include "server/cli/demo_build.h"
#include "server/cli/demo_load.h"
#include "server/cli/demo_models.h"
#include "server/cli/demo_training.h"
#include "server/cli/demo_verdict.h"
#include "server/cli/demo_view.h"
#include "server/cli/interruption.h"
#include "server/lifecycle/server.h"

namespace tandem::cli {

struct DemoOptions {
  double seconds = 10;
  std::vector<std::string> models = {"squeezenet", "shufflenet", "resnet50"};
  std::string samples;
  std::string json_file;
  double load = 0.4;
  bool training = true;
  int training_steps = 4000;
  std::string colocation = "tandem";
  bool compare = true;   // With training that nobody manages.
  std::string trainer;   // Empty: the program beside this one.
  std::string launcher;  // ./tandem, which can build the trainer; empty when nobody can.
};

// One run of the demo: serves models, offers load to them, trains one of them meanwhile, and says how all did. A server
// of its own, in a folder of its own. Used by main alone; what it is given outlives it.
class DemoRun {
 public:
  DemoRun(const DemoOptions& options, const ScratchFolder& scratch, Interruption& interruption);

  // The exit code. What keeps the demo from its end is an error.
  [[nodiscard]] Result<int> Run();

 private:
  // A time in which load is offered.
  struct Stage {
    std::chrono::nanoseconds duration = std::chrono::hours(24);
    const std::atomic<bool>* enough = nullptr;  // Ends it; without, it lasts its whole duration.
    std::function<std::vector<std::string>()> lines;
    loadgen::LoadSpec* load = nullptr;  // Null: the demo's own, whose answers are judged.
    std::function<void(const loadgen::LoadProgress&)> on_progress = [](const auto&) {};
  };

  // Each does one part, in this order. An interruption ends a part early, and the rest does nothing.
  Status LayOut();
  Status Serve();
  void StartBuild();
  Status MeasureModels();
  Status WhileBuilding();
  Status Alone();
  Status Unmanaged();
  Status BesideTraining();
  Status WithNewVersion();
  Result<int> Conclude();

  // Load on a server that manages nothing, while the demo's own does not run.
  Status OfferUnmanaged();
  // Sets `report` when load was sent.
  Status Offer(const Stage& stage, std::optional<loadgen::LoadReport>& report);
  // The lines of a stage that has nothing else to say.
  [[nodiscard]] std::vector<std::string> ServedLines() const;
  void TakeAnswer(const loadgen::JudgedRequest& request);
  [[nodiscard]] int Interrupted(const char* when) const;
  // Whether there is a trainer; else the outcome says why not.
  [[nodiscard]] bool CanTrain();

  // Constant after construction.
  const DemoOptions& options_;
  const ScratchFolder& scratch_;
  Interruption& interruption_;
  const MonotonicTime start_;

  ServeOptions serve_;
  std::unique_ptr<TrainerBuild> build_;  // Null: nothing is to be built.
  std::unique_ptr<Server> server_;
  std::unique_ptr<DemoTraining> training_;
  std::vector<DemoModel> models_;  // With training, the last one is that which learns.
  loadgen::LoadSpec load_;
  std::unique_ptr<DemoView> view_;
  DemoOutcome outcome_;
  Status answers_;  // The first that could not be understood.
};

}  // namespace tandem::cli
