#include "loadgen/csv_lines.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem::loadgen {
namespace {

using Lines = std::vector<std::string>;

LineHandler Into(Lines& lines) {
  return [&lines](std::string_view line) -> Status {
    if (line == "bad") return Invalid("this is bad");
    lines.emplace_back(line);
    return {};
  };
}

TEST(LineCutter, GivesTheSameLinesForPiecesOfEverySize) {
  const std::string text = "first\r\n\nthird,\r,x\r\nlast";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Lines lines;
    LineCutter cutter("f", {}, Into(lines));
    for (std::size_t at = 0; at < text.size(); at += size) ASSERT_TRUE(cutter.Feed(text.substr(at, size)));
    ASSERT_TRUE(cutter.End());
    EXPECT_EQ(lines, (Lines{"first", "", "third,\r,x", "last"})) << size;
  }
}

TEST(ReadLines, TakesALastNewlineForTheEndAndNotForAnotherLine) {
  Lines lines;
  ASSERT_TRUE(ReadLines("a\nb\n", "f", {}, Into(lines)));
  EXPECT_EQ(lines, (Lines{"a", "b"}));
  lines.clear();
  ASSERT_TRUE(ReadLines("", "f", {}, Into(lines)));
  EXPECT_TRUE(lines.empty());
}

TEST(ReadLines, NamesTheFileAndTheLineThatWasRefused) {
  Lines lines;
  const Status read = ReadLines("a\nb\nbad\nc\n", "day.csv", {}, Into(lines));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), (Error{ErrorCode::kInvalidArgument, "'day.csv' line 3: this is bad"}));
  EXPECT_EQ(lines.size(), 2U);
}

TEST(ReadLines, IsBounded) {
  Lines lines;
  const Status line = ReadLines("a\n12345\n123456\n", "f", {.line = 5}, Into(lines));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error(), (Error{ErrorCode::kTooLarge, "'f' line 3: the line is longer than 5 bytes"}));
  const Status bytes = ReadLines("12345678", "f", {.bytes = 7}, Into(lines));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error(), (Error{ErrorCode::kTooLarge, "'f' is larger than 7 bytes"}));
}

TEST(ReadLines, SaysThatAByteOrderMarkIsThere) {
  Lines lines;
  const Status read = ReadLines("\xEF\xBB\xBFtime\n", "f", {}, Into(lines));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("'f' line 1: the file must not start with a byte order mark"), std::string::npos);
}

TEST(ReadFileLines, ReadsAFileLargerThanOnePiece) {
  const std::string file = testing::TempDir() + "tandem-lines-" + std::to_string(getpid());
  Lines written;
  {
    std::ofstream stream(file);
    for (int i = 0; i < 100'000; ++i) stream << written.emplace_back("line " + std::to_string(i)) << '\n';
  }
  Lines lines;
  ASSERT_TRUE(ReadFileLines(file, {}, Into(lines)));
  EXPECT_EQ(lines, written);
  std::filesystem::remove(file);
}

TEST(ReadFileLines, NamesTheFileThatCannotBeRead) {
  Lines lines;
  for (const std::string& file : {std::string("/no/such/file.csv"), testing::TempDir(), std::string()}) {
    const Status read = ReadFileLines(file, {}, Into(lines));
    ASSERT_FALSE(read) << file;
    EXPECT_NE(read.error().message.find("'" + file + "' cannot be read: "), std::string::npos);
  }
  EXPECT_FALSE(ReadFileLines("/dev/zero", {}, Into(lines)));
}

TEST(SplitFields, KeepsEmptyFields) {
  std::vector<std::string_view> fields{"old"};
  SplitFields(",a,,b,", fields);
  EXPECT_EQ(fields, (std::vector<std::string_view>{"", "a", "", "b", ""}));
  SplitFields("", fields);
  EXPECT_EQ(fields, (std::vector<std::string_view>{""}));
}

}  // namespace
}  // namespace tandem::loadgen
