#include "runtimes/training/data/mapped_file.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtimes/training/data/data_root.h"
#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// What is lost stays so for the process: each test has one of its own. What `work` says, and the signal that ended it.
struct Outcome {
  std::string said;
  int signal = 0;
};
Outcome InAProcess(const std::function<std::string()>& work) {
  int pipe[2] = {};
  if (::pipe2(pipe, O_CLOEXEC) != 0) return {"pipe"};
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = work();
    ::_exit(::write(pipe[1], said.data(), said.size()) == std::ssize(said) ? 0 : 1);
  }
  ::close(pipe[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer, sizeof buffer)) > 0;) outcome.said.append(buffer, got);
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome;
}

std::string LossOrNone() {
  const Status lost = CheckNoFileLost();
  return lost ? "none" : lost.error().message;
}

class MappedFileTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 100'000;
  MappedFileTest() { folder_.Write("big", std::string(kBytes, 'x')); }

  // Maps the file, lets `change` happen, reads all, and tells what is lost.
  Outcome ReadAfter(const std::function<void()>& change) {
    return InAProcess([&]() -> std::string {
      GuardMappedFiles();
      const auto root = DataRoot::Open(folder_.path());
      const auto file = root->Map("big");
      if (!file) return file.error().message;
      change();
      const auto count = std::ranges::count(file->bytes(), 'x');
      return std::to_string(count) + " " + LossOrNone();
    });
  }

  const DataFolder folder_;
};

TEST_F(MappedFileTest, ReadingWhatIsGoneIsAnErrorThatNamesTheFile) {
  const Outcome outcome = ReadAfter([&] { fs::resize_file(folder_.path() / "big", 10'000); });
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_THAT(outcome.said, HasSubstr("10000 data 'big' changed while it was read"));
}

TEST_F(MappedFileTest, ALossWithinThePageInWhichTheFileEndsIsFound) {
  const Outcome outcome = ReadAfter([&] { fs::resize_file(folder_.path() / "big", kBytes - 1); });
  EXPECT_THAT(outcome.said, HasSubstr("99999 data 'big' changed while it was read"));
}

TEST_F(MappedFileTest, AFileThatIsDeletedOrReplacedIsReadAsItWas) {
  EXPECT_EQ(ReadAfter([&] { fs::remove(folder_.path() / "big"); }).said, "100000 none");
  folder_.Write("big", std::string(kBytes, 'x'));
  folder_.Write("other", "short");
  EXPECT_EQ(ReadAfter([&] { fs::rename(folder_.path() / "other", folder_.path() / "big"); }).said, "100000 none");
}

TEST_F(MappedFileTest, AFileThatIsMappedNoMoreIsNoLoss) {
  const Outcome outcome = InAProcess([&] {
    GuardMappedFiles();
    {
      const auto file = DataRoot::Open(folder_.path())->Map("big");
    }
    fs::resize_file(folder_.path() / "big", 0);
    return LossOrNone();
  });
  EXPECT_EQ(outcome.said, "none");
}

TEST_F(MappedFileTest, AnotherBusErrorEndsTheProcess) {
  const Outcome outcome = InAProcess([&]() -> std::string {
    std::signal(SIGBUS, SIG_DFL);
    GuardMappedFiles();
    const int descriptor = ::open((folder_.path() / "big").c_str(), O_RDWR);
    auto* const start = static_cast<volatile char*>(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0));
    if (::ftruncate(descriptor, 0) != 0) return "ftruncate";
    return std::string(1, start[50'000]);
  });
  EXPECT_EQ(outcome.signal, SIGBUS);
}

}  // namespace
}  // namespace tandem::training
