#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"

namespace tandem::http {

inline std::string Get(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}

inline std::string Post(const std::string& path, const std::string& body, const std::string& fields = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields +
         "\r\n" + body;
}

// A server on a free port and on a fake clock, so that no timeout passes unless the test says so. Its handler answers
// at once with the path and the body, but keeps requests for /keep for the test to answer.
class ServerFixture : public ::testing::Test {
 protected:
  static ServerOptions Options(const Clock& clock) {
    ServerOptions options;
    options.clock = &clock;
    options.timeouts.tick = std::chrono::milliseconds(2);
    return options;
  }

  void Start(ServerOptions options) {
    auto server = HttpServer::Start(std::move(options), [this](std::shared_ptr<Exchange> e) { Handle(std::move(e)); });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void Start() { Start(Options(clock_)); }
  // Before the derived class goes, which the handler calls into.
  void TearDown() override { server_.reset(); }

  virtual void Handle(std::shared_ptr<Exchange> exchange) {
    if (exchange->request().head.path() == "/keep") {
      MutexLock lock(mu_);
      kept_.push_back(std::move(exchange));
      arrived_.NotifyAll();
      return;
    }
    Response response;
    response.content_type = "text/plain";
    response.body = std::string(exchange->request().head.path());
    if (exchange->request().body.size() > 0) response.parts.push_back(exchange->request().body);
    exchange->Respond(std::move(response));
  }

  // The next request for /keep.
  std::shared_ptr<Exchange> NextKept() {
    MutexLock lock(mu_);
    while (kept_.empty()) {
      if (!arrived_.WaitFor(mu_, std::chrono::seconds(10))) return nullptr;
    }
    auto exchange = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return exchange;
  }

  // Lets time pass in steps until the server does something about `client`.
  void PassTimeUntilReadable(const RawClient& client, std::chrono::milliseconds step) {
    for (int i = 0; i < 1000 && !client.Readable(10); ++i) clock_.Advance(step);
  }

  [[nodiscard]] bool EventuallyConnections(std::size_t count) {
    return Eventually([&] { return server_->connections() == count; });
  }

  FakeClock clock_;
  Mutex mu_;
  CondVar arrived_;
  std::vector<std::shared_ptr<Exchange>> kept_ GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace tandem::http
