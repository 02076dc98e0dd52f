#include "server/cli/model_describer.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "server/cli/infer_inputs.h"

namespace tandem::cli {
namespace {

class RestDescriber final : public ModelDescriber {
 public:
  explicit RestDescriber(std::unique_ptr<ApiClient> client) : client_(std::move(client)) {}

  Result<ModelSignature> Describe(const std::string& model, const std::string& version) override {
    try {
      TANDEM_ASSIGN(DescribedModel described, DescribeModel(*client_, model, version));
      return std::move(described.signature);
    } catch (const Json::Exception&) {
      // An answer of another form than asked for.
      return Fail(ErrorCode::kInternal, "the server's answer is not what a model server gives; is --url right?");
    }
  }

  std::string ServerName() override {
    const auto about = client_->Get("/v2");
    if (!about || !about->isObject() || !(*about)["name"].isString()) return "";
    return (*about)["name"].asString() + ((*about)["version"].isString() ? " " + (*about)["version"].asString() : "");
  }

 private:
  const std::unique_ptr<ApiClient> client_;
};

}  // namespace

Result<std::unique_ptr<ModelDescriber>> ModelDescriber::Connect(const loadgen::Target& target,
                                                                const ClientOptions& options) {
  if (!target.grpc()) {
    TANDEM_ASSIGN(auto client, ApiClient::Connect(options));
    return std::make_unique<RestDescriber>(std::move(client));
  }
  return Fail(ErrorCode::kUnsupported, "models cannot be asked for over gRPC yet");
}

}  // namespace tandem::cli
