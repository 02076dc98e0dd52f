#include "bench/machine.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem::bench {
namespace {

class CommitTest : public testing::Test {
 protected:
  CommitTest() : root_(testing::TempDir() + "tandem-commit-" + std::to_string(getpid())) {
    std::filesystem::create_directories(root_ / ".git" / "refs" / "heads");
  }
  ~CommitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) { std::ofstream(root_ / ".git" / file) << text; }

  const std::filesystem::path root_;
  const std::string commit_ = "0123456789abcdef0123456789abcdef01234567";
};

TEST_F(CommitTest, ReadsTheBranchThatIsCheckedOut) {
  Write("HEAD", "ref: refs/heads/main\n");
  Write("refs/heads/main", commit_ + "\n");
  EXPECT_EQ(CommitOf(root_), commit_);
}

TEST_F(CommitTest, ReadsPackedBranches) {
  Write("HEAD", "ref: refs/heads/main\n");
  Write("packed-refs", "# pack-refs with: peeled\n" + commit_ + " refs/heads/main\n");
  EXPECT_EQ(CommitOf(root_), commit_);
}

TEST_F(CommitTest, ReadsADetachedHead) {
  Write("HEAD", commit_ + "\n");
  EXPECT_EQ(CommitOf(root_), commit_);
}

TEST_F(CommitTest, ReadsTheBranchOfALinkedWorkingTree) {
  std::filesystem::create_directories(root_ / ".git" / "worktrees" / "linked");
  std::filesystem::create_directories(root_ / "linked");
  std::ofstream(root_ / "linked" / ".git") << "gitdir: " << (root_ / ".git" / "worktrees" / "linked").string() << "\n";
  Write("worktrees/linked/HEAD", "ref: refs/heads/side\n");
  Write("worktrees/linked/commondir", "../..\n");
  Write("refs/heads/side", commit_ + "\n");
  EXPECT_EQ(CommitOf(root_ / "linked"), commit_);
}

TEST_F(CommitTest, IsUnknownWithoutACommitOrACheckout) {
  Write("HEAD", "ref: refs/heads/main\n");
  EXPECT_EQ(CommitOf(root_), "unknown");
  EXPECT_EQ(CommitOf(root_ / "elsewhere"), "unknown");
}

TEST(DescribeMachine, FindsSomethingToSayAboutTheMachine) {
  const Machine machine = DescribeMachine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_gb, 0);
}

}  // namespace
}  // namespace tandem::bench
