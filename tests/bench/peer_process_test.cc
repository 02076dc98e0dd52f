#include "bench/peer_process.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "bench/http_call.h"
#include "bench/temporary_folder.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class PeerProcessTest : public testing::Test {
 protected:
  PeerProcessTest() {
    context_.work = folder_->path();
    context_.folder = folder_->path();
    context_.threads = 3;
    peer_.name = "files";
    peer_.command = {"python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", "{folder}"};
    peer_.ready = "/";
    peer_.start_timeout = 60s;
  }

  // The reason that it did not start, without the name of a log that was kept; that log is removed.
  std::string ReasonOf(const Result<std::unique_ptr<PeerProcess>>& started) {
    if (started) return "it started";
    std::string message = started.error().message;
    const std::size_t at = message.find(" (its log is kept: ");
    if (at == std::string::npos) return message;
    const fs::path log = message.substr(at + 19, message.size() - at - 20);
    EXPECT_TRUE(fs::exists(log));
    fs::remove(log);
    return message.substr(0, at) + " (log kept)";
  }

  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
  BenchContext context_;
  PeerSpec peer_;
};

TEST_F(PeerProcessTest, ServesOnItsPortUntilItIsDropped) {
  std::ofstream(folder_->path() / "hello") << "hello";
  int port = 0;
  {
    const auto started = PeerProcess::Start(context_, peer_, "");
    ASSERT_TRUE(started) << started.error().message;
    port = (*started)->port();
    EXPECT_EQ(*GetStatus(port, "/hello"), 200);
    EXPECT_NE((*started)->grpc_port(), port);
  }
  EXPECT_FALSE(GetStatus(port, "/hello"));
}

TEST_F(PeerProcessTest, FillsInWhatThePeerNeedsToKnow) {
  peer_.command = {"bash", "-c", "echo $THREADS {model} {model_file} {folder}; exit 1", "{port}"};
  peer_.environment = {{"THREADS", "{threads}"}};
  const std::string file = *ModelFile(context_, "tiny");
  EXPECT_TRUE(fs::exists(file));
  const auto started = PeerProcess::Start(context_, peer_, "tiny");
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.contains("it ended while it started: 3 tiny " + file.substr(0, 20)))
      << started.error().message;
  ReasonOf(started);
}

TEST_F(PeerProcessTest, WithoutItsPackagesItSaysHowToGetThem) {
  peer_.packages = "absent";
  peer_.command = {"{python}", "{port}"};
  EXPECT_EQ(ReasonOf(PeerProcess::Start(context_, peer_, "")), "./tandem bench peers install absent");
  setenv("TANDEM_PEER_absent", "/no/such/python", 1);
  EXPECT_EQ(ReasonOf(PeerProcess::Start(context_, peer_, "")), "./tandem bench peers install absent");
  setenv("TANDEM_PEER_absent", "/usr/bin/false", 1);
  EXPECT_EQ(ReasonOf(PeerProcess::Start(context_, peer_, "")),
            "peer 'files': it ended while it started: it printed nothing (log kept)");
  unsetenv("TANDEM_PEER_absent");
}

TEST_F(PeerProcessTest, APeerThatDoesNotGetReadyIsGivenUp) {
  peer_.ready = "/no-such-file";
  peer_.start_timeout = 1s;
  const std::string reason = ReasonOf(PeerProcess::Start(context_, peer_, ""));
  EXPECT_TRUE(reason.starts_with("peer 'files': it was not ready within 1 s: ")) << reason;
  EXPECT_TRUE(reason.ends_with("(log kept)")) << reason;
}

TEST_F(PeerProcessTest, AnInterruptionEndsTheWait) {
  const std::atomic<bool> stop{true};
  context_.stop = &stop;
  peer_.ready = "/no-such-file";
  const auto started = PeerProcess::Start(context_, peer_, "");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kCancelled);
}

TEST_F(PeerProcessTest, AModelThatIsNotThereIsNamed) {
  const auto started = PeerProcess::Start(context_, peer_, "absent.onnx");
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.contains("absent.onnx' is not there")) << started.error().message;
}

}  // namespace
}  // namespace tandem::bench
