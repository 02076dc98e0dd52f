#include "server/cli/model_describer.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "loadgen/grpc_describer.h"
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

class OverGrpc final : public ModelDescriber {
 public:
  explicit OverGrpc(std::unique_ptr<loadgen::GrpcDescriber> describer) : describer_(std::move(describer)) {}

  Result<ModelSignature> Describe(const std::string& model, const std::string& version) override {
    return describer_->Describe(model, version);
  }
  std::string ServerName() override { return describer_->ServerName(); }

 private:
  const std::unique_ptr<loadgen::GrpcDescriber> describer_;
};

}  // namespace

Result<std::unique_ptr<ModelDescriber>> ModelDescriber::Connect(const loadgen::Target& target,
                                                                const ClientOptions& options) {
  if (!target.grpc()) {
    TANDEM_ASSIGN(auto client, ApiClient::Connect(options));
    return std::make_unique<RestDescriber>(std::move(client));
  }
  loadgen::GrpcTransportOptions about{.host = target.host, .port = target.port};
  about.request_timeout = std::chrono::nanoseconds(std::llround(options.timeout_secs * 1e9));
  if (target.tls()) {
    about.tls = options.tls;
    if (!options.tls.verify) {
      std::fprintf(stderr, "warning: --tls-insecure: the certificate of %s is not checked\n", options.url.c_str());
    }
  }
  loadgen::GrpcDescriber::Metadata metadata;
  if (!options.token.empty()) metadata.emplace_back("authorization", "Bearer " + options.token);
  TANDEM_ASSIGN(auto describer, loadgen::GrpcDescriber::Connect(std::move(about), std::move(metadata)));
  return std::make_unique<OverGrpc>(std::move(describer));
}

}  // namespace tandem::cli
