#include "loadgen/report_file.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::loadgen {
namespace {

namespace fs = std::filesystem;

class ReportFileTest : public testing::Test {
 protected:
  ReportFileTest() : folder_(testing::TempDir() + "tandem-report-" + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~ReportFileTest() override { fs::remove_all(folder_); }

  static std::string Read(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] std::ptrdiff_t Files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  const fs::path folder_;
};

TEST_F(ReportFileTest, CheckingLeavesNothingBehindAndChangesNothing) {
  EXPECT_TRUE(CheckReportFile(folder_ / "new.json"));
  EXPECT_EQ(Files(), 0);
  std::ofstream(folder_ / "old.json") << "old";
  EXPECT_TRUE(CheckReportFile(folder_ / "old.json"));
  EXPECT_EQ(Read(folder_ / "old.json"), "old");
}

TEST_F(ReportFileTest, SaysBeforehandWhatCannotBeWritten) {
  for (const fs::path& file : {folder_ / "missing" / "a.json", folder_, fs::path()}) {
    const Status checked = CheckReportFile(file);
    ASSERT_FALSE(checked) << file;
    EXPECT_NE(checked.error().message.find(file.string()), std::string::npos);
    EXPECT_FALSE(WriteReportFile(file, "text")) << file;
  }
}

TEST_F(ReportFileTest, ReplacesTheWholeAndLeavesNothingBeside) {
  const fs::path file = folder_ / "a.json";
  ASSERT_TRUE(WriteReportFile(file, "a long first text"));
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  ASSERT_TRUE(WriteReportFile(file, "second"));
  EXPECT_EQ(Read(file), "second");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
  EXPECT_EQ(Files(), 1);
}

TEST_F(ReportFileTest, WritesThroughALink) {
  fs::create_symlink("target.json", folder_ / "link.json");
  ASSERT_TRUE(WriteReportFile(folder_ / "link.json", "text"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(Read(folder_ / "target.json"), "text");
}

TEST_F(ReportFileTest, WritesToWhatIsNoRegularFile) {
  EXPECT_TRUE(CheckReportFile("/dev/null"));
  EXPECT_TRUE(WriteReportFile("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace tandem::loadgen
