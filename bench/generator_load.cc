#include "bench/generator_load.h"

#include <utility>

#include "bench/open_files.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::bench {
namespace {

constexpr int kMostConnections = 60'000;  // Of one address to one port.
constexpr int kDefaultConnections = 1024;
constexpr int kFilesBesideConnections = 4096;
constexpr std::int64_t kFloats = 64;

ModelSignature TinySignature() {
  ModelSignature signature;
  signature.inputs.push_back({.name = "x", .type = DataType::kFp32, .shape = {1, kFloats}});
  return signature;
}

}  // namespace

Result<GeneratorTarget> ParseGeneratorTarget(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  GeneratorTarget target;
  TANDEM_ASSIGN(target.peer, fields.Text("peer"));
  TANDEM_TRY(FindPeer(peers, target.peer, fields.At("peer")));
  TANDEM_ASSIGN(target.connections, fields.WholeOr("connections", 1, kMostConnections, kDefaultConnections));
  return target;
}

Result<std::unique_ptr<GeneratorLoad>> GeneratorLoad::Start(const BenchContext& context,
                                                            const GeneratorTarget& target) {
  AllowOpenFiles(target.connections + kFilesBesideConnections);
  TANDEM_ASSIGN(const PeerSpec* spec, FindPeer(context.peers, target.peer, "peers"));
  TANDEM_ASSIGN(auto peer, PeerProcess::Start(context, *spec, ""));
  return std::unique_ptr<GeneratorLoad>(new GeneratorLoad(std::move(peer), target.connections));
}

Result<loadgen::LoadSpec> GeneratorLoad::Spec(const loadgen::ArrivalSpec& arrivals) const {
  TANDEM_ASSIGN(const auto inputs, loadgen::RandomInputs(TinySignature(), {.seed = 1}));
  TANDEM_ASSIGN(auto request, loadgen::BuildInferRequest({.port = peer_->port(), .model = "tiny"}, inputs));
  loadgen::LoadSpec spec;
  spec.port = peer_->port();
  spec.connections = static_cast<std::size_t>(connections_);
  spec.models.push_back({.model = "null", .request = std::move(request), .arrivals = arrivals, .slo = {}});
  return spec;
}

}  // namespace tandem::bench
