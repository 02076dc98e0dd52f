#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/base/mutex.h"

struct ssl_ctx_st;

namespace tandem::loadgen {

// What the server does with one request.
struct ScriptedReply {
  std::string bytes;    // Sent as they are; may be empty.
  bool close = false;   // Closes the connection after that.
  bool abrupt = false;  // Closes it without a word, where TLS would say good-bye.

  [[nodiscard]] static ScriptedReply Ok(const std::string& body = "ok");
};

// PEM files of a server that speaks TLS.
struct ScriptedTls {
  std::string certificate, key;
  std::string client_ca;  // Not empty: clients must show a certificate of its.
  int version = 0;        // 0: any.
};

struct ScriptedOptions {
  bool ipv6 = false;
  const ScriptedTls* tls = nullptr;  // Null: plain.
};

// An HTTP server for tests that does what it is told: one thread per connection, requests are handed to the script
// in full. Listens on an ephemeral port of the loopback from construction to destruction.
class ScriptedServer {
 public:
  // `script` is called from many threads, with the number of the request (from 0) and its bytes.
  using Script = std::function<ScriptedReply(int, const std::string&)>;

  explicit ScriptedServer(Script script, const ScriptedOptions& options = {});
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // 0 when it could not listen (no IPv6, for instance).
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int connections() const { return connections_.load(); }
  [[nodiscard]] int requests() const { return requests_.load(); }
  [[nodiscard]] int most_at_once() const { return most_at_once_.load(); }

  // Between these, no request is answered.
  void Hold();
  void Release();

 private:
  class Peer;

  void Accept();
  void Serve(int fd);
  void Answer(Peer& peer);
  void WaitUntilReleased();

  // Constant after construction.
  const Script script_;
  std::shared_ptr<ssl_ctx_st> tls_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;

  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};
  std::atomic<int> at_once_{0};
  std::atomic<int> most_at_once_{0};

  Mutex mu_;
  CondVar released_;
  bool held_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<int> sockets_ GUARDED_BY(mu_);
  std::list<std::thread> threads_ GUARDED_BY(mu_);
};

}  // namespace tandem::loadgen
