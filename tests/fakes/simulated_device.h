#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "colocation/dispatcher.h"
#include "tests/fakes/fake_session.h"

namespace tandem::testing {

// A real dispatcher whose runs take exactly the time that the test says, by a clock that goes from the end of one run
// to that of the next. A test offers requests and ends runs, one at a time; enough must wait that no worker is idle.
class SimulatedDevice {
 public:
  struct Request {
    std::uint64_t level = 9;
    std::optional<std::chrono::nanoseconds> deadline_in = {};
    std::int64_t elements = 1;
    std::int64_t width = 2;  // Requests of one width can share a run.
  };
  struct HeldRun {
    std::size_t model = 0;
    std::size_t first = 0;  // The request that leads the batch.
    MonotonicTime began;
    MonotonicTime ends;
    bool ended = false;
  };

  SimulatedDevice(const AdmissionPolicy& admission, int workers) : workers_(static_cast<std::size_t>(workers)) {
    dispatcher_.emplace(clock_, admission, DispatcherOptions{.workers = workers});
  }
  ~SimulatedDevice() {
    {
      const MutexLock lock(mu_);
      open_ = true;
      changed_.NotifyAll();
    }
    dispatcher_.reset();
  }
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  // Runs take so long whatever their size is.
  std::size_t Add(BatchSettings settings, std::chrono::nanoseconds run) {
    const std::size_t index = models_.size();
    settings.max_batch_size = std::max<std::int64_t>(1, settings.max_batch_size);
    models_.push_back(MakeServable(
        "m" + std::to_string(index), settings,
        [this, index, run](std::span<const Tensor> inputs, std::span<const std::string> outputs, CancelToken&) {
          Hold(index, run, inputs[0]);
          Tensor output = inputs[0];
          output.name = outputs[0];
          return Result<std::vector<Tensor>>(std::vector<Tensor>{output});
        }));
    return index;
  }

  // The number of the request, counted from 0.
  std::size_t Offer(std::size_t model, const Request& request) {
    WorkItem item;
    item.servable = models_[model];
    // Its number goes along, so that a run knows whose it is.
    item.inputs = {MakeTensor("x", DataType::kFp32, {request.elements, request.width},
                              std::vector<float>(static_cast<std::size_t>(request.elements * request.width),
                                                 static_cast<float>(offered_.size())))};
    item.outputs = {"y"};
    item.batch = request.elements;
    item.priority = request.level;
    if (request.deadline_in) item.deadline = clock_.Now() + *request.deadline_in;
    item.cancel = std::make_shared<CancelToken>();
    item.done = [](const Result<WorkResult>&) {};
    offered_.push_back(request);
    dispatcher_->Submit(std::move(item));
    return offered_.size() - 1;
  }

  // Until every worker runs something; in the order in which they will end.
  std::vector<HeldRun> Running() {
    const MutexLock lock(mu_);
    while (running_.size() < workers_) changed_.Wait(mu_);
    std::vector<HeldRun> runs(running_.begin(), running_.end());
    std::ranges::stable_sort(runs, {}, &HeldRun::ends);
    return runs;
  }

  // Ends the run that ends first. What `meanwhile` offers has come before its worker looks for more.
  HeldRun EndOne(const std::function<void()>& meanwhile = [] {}) {
    const HeldRun first = Running().front();
    clock_.Advance(first.ends - clock_.Now());
    meanwhile();
    const MutexLock lock(mu_);
    std::ranges::find(running_, first.first, &HeldRun::first)->ended = true;
    changed_.NotifyAll();
    while (std::ranges::contains(running_, first.first, &HeldRun::first)) changed_.Wait(mu_);
    return first;
  }

  [[nodiscard]] MonotonicTime now() const { return clock_.Now(); }
  [[nodiscard]] const Servable& model(std::size_t index) const { return *models_[index]; }
  [[nodiscard]] std::size_t models() const { return models_.size(); }
  [[nodiscard]] const Request& offered(std::size_t number) const { return offered_[number]; }
  [[nodiscard]] std::size_t waiting(std::size_t model) const { return dispatcher_->queued(*models_[model]); }

 private:
  // What a run does, on the worker's thread.
  void Hold(std::size_t model, std::chrono::nanoseconds run, const Tensor& input) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const MonotonicTime now = clock_.Now();
    running_.push_back({.model = model,
                        .first = static_cast<std::size_t>(ValuesOf<float>(input)[0]),
                        .began = now,
                        .ends = now + run});
    const auto mine = std::prev(running_.end());
    changed_.NotifyAll();
    while (!mine->ended && !open_) changed_.Wait(mu_);
    running_.erase(mine);
    changed_.NotifyAll();
  }

  const std::size_t workers_;
  FakeClock clock_;

  // The test's thread only.
  std::vector<std::shared_ptr<Servable>> models_;
  std::vector<Request> offered_;

  Mutex mu_;
  CondVar changed_;
  std::list<HeldRun> running_ GUARDED_BY(mu_);
  bool open_ GUARDED_BY(mu_) = false;

  std::optional<Dispatcher> dispatcher_;  // Last: its threads use the rest.
};

}  // namespace tandem::testing
