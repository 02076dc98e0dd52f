#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "api/base/format.h"
#include "server/infer/inference_service.h"
#include "tests/fakes/fake_session.h"

namespace tandem {

// One model "m" whose run is `run_`.
class InferenceServiceTest : public ::testing::Test {
 protected:
  InferRequest Request(std::optional<std::chrono::microseconds> slo = {}) {
    InferRequest request;
    request.model = "m";
    request.inputs = {
        {.tensor = testing::MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 2}), .shared = {}}};
    request.slo = slo;
    request.arrival = clock_.Now();
    request.cancel = std::make_shared<CancelToken>();
    return request;
  }
  Result<InferResponse> Ask(InferRequest request) {
    std::promise<Result<InferResponse>> answer;
    service_.Infer(std::move(request), [&](Result<InferResponse> response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  std::string Slo() const {
    std::string counts;
    for (const char* name : {"met", "missed", "rejected"}) {
      const std::string text = Text();
      const std::string key = Format("tandem_slo_{}_total{{model=\"m\"}} ", name);
      const auto at = text.find(key);
      counts += Format("{}={} ", name, at == std::string::npos ? '0' : text[at + key.size()]);
    }
    return counts;
  }

  FakeClock clock_;
  testing::FakeSession::RunFunction run_;
  std::shared_ptr<Servable> servable_ =
      testing::MakeServable("m", {.max_batch_size = 4},
                            [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                   CancelToken& cancel) -> Result<std::vector<Tensor>> {
                              if (run_) return run_(inputs, outputs, cancel);
                              Tensor output = inputs[0];
                              output.name = outputs[0];
                              return std::vector<Tensor>{output};
                            });
  BoundedQueueAdmission admission_;
  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
  SharedRegions regions_;
  Dispatcher dispatcher_{clock_, admission_, {}};
  InferenceService service_{{clock_, dispatcher_, regions_, metrics_},
                            [this](std::string_view model, std::string_view) -> Result<std::shared_ptr<Servable>> {
                              if (model != "m") return Fail(ErrorCode::kNotFound, "no model '{}'", model);
                              return servable_;
                            },
                            std::nullopt};
};

}  // namespace tandem
