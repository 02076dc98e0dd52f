#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "bench/bare_session.h"
#include "bench/context.h"
#include "bench/interleave.h"
#include "bench/loopback.h"
#include "bench/peer_process.h"
#include "bench/server_process.h"
#include "bench/side_spec.h"
#include "loadgen/http_request.h"

namespace tandem::bench {

// All that stands ready while one model is measured on several sides: servers, peers, bare sessions, and the one input
// that every side gets. Starts what a side needs when it is added. Borrows the context, which must outlive it; the
// sides borrow the stage. Used by one thread.
class Stage {
 public:
  // Loads the model bare: its signature says what the input is.
  [[nodiscard]] static Result<std::unique_ptr<Stage>> Set(BenchContext& context, const std::string& model, int users);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The error of a peer says why it did not run; any other is ours.
  [[nodiscard]] Result<Side> Add(const SideSpec& spec);

 private:
  Stage(BenchContext& context, std::string model, int users)
      : context_(context), model_(std::move(model)), users_(users) {}

  Result<Side> AddBare(const SideSpec& spec);
  Result<Side> AddServer(const SideSpec& spec, int http_port, int grpc_port);
  Result<Side> AddPeer(const SideSpec& spec);
  Result<Side> AddLoopback(const SideSpec& spec);
  Result<Side> AddJsonDecoding(const SideSpec& spec);
  Result<loadgen::HttpRequest> RequestFor(const SideSpec& spec, int port) const;
  Result<ServerProcess*> Server(int workers);
  Result<PeerProcess*> Peer(const std::string& name);

  BenchContext& context_;
  const std::string model_;
  const int users_;
  std::vector<Tensor> inputs_;
  std::unique_ptr<BareSession> bare_;
  std::unique_ptr<BareSession> spinning_;
  std::vector<std::unique_ptr<Loopback>> loopbacks_;
  std::map<int, std::unique_ptr<ServerProcess>> servers_;              // By --workers.
  std::map<std::string, Result<std::unique_ptr<PeerProcess>>> peers_;  // A peer that fails is not tried again.
};

}  // namespace tandem::bench
