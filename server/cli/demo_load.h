#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "loadgen/run.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// A model to be asked, and how long it takes when nobody else asks.
struct DemoModel {
  std::string name;
  std::vector<Tensor> inputs;
  bool keep_answers = false;        // Hands them to whoever hears of the requests.
  std::optional<double> most_rate;  // Requests per second, whatever its share would allow.
  std::chrono::nanoseconds alone{0};
};

// One of the sample models, with inputs that fit it.
[[nodiscard]] Result<DemoModel> SampleModel(ApiClient& client, const std::string& name);

// A short closed loop of one user: the median is the model's own time. Stopped by `stop` it says nothing.
[[nodiscard]] Status MeasureAlone(DemoModel& model, int port, const loadgen::LoadHooks& hooks);

// Poisson arrivals on all models, each of which gets an equal part of `load`, a share of the device's time, and an SLO
// that leaves room for waiting behind the others. Every request carries it: the server drops what it cannot answer in
// time. The duration is left to the caller.
[[nodiscard]] Result<loadgen::LoadSpec> PlanLoad(const std::vector<DemoModel>& models, double load, int port);

}  // namespace tandem::cli
