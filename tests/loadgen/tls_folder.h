#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/tls_client.h"
#include "tests/server/http/tls_certificates.h"

namespace tandem::loadgen {

// Tests with certificates: an authority, a certificate of its for this machine's loopback, and another authority.
class TlsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "tandem-loadgen-tls-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    authority_ = http::MakeCertificate(folder_, "authority");
    stranger_ = http::MakeCertificate(folder_, "stranger");
    own_ = http::MakeCertificate(folder_, "server", &authority_, {.alternative_names = "DNS:localhost,IP:127.0.0.1"});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static TlsClientOptions Trusting(const http::Certificate& authority) {
    return {.ca_file = authority.certificate_file};
  }

  std::filesystem::path folder_;
  http::Certificate authority_, stranger_, own_;
};

// A listener that says the same words to everybody who has said something, and closes.
class Listener {
 public:
  explicit Listener(std::string words) : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, words = std::move(words)] {
      while (true) {
        const int fd = accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        char bytes[4096];
        if (recv(fd, bytes, sizeof bytes, 0) > 0) send(fd, words.data(), words.size(), MSG_NOSIGNAL);
        close(fd);
      }
    });
  }
  ~Listener() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  const int listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tandem::loadgen
