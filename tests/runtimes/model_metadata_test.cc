#include "runtimes/onnx/model_metadata.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string Field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (std::size_t size = bytes.size(); true; size >>= 7) {
    out += static_cast<char>((size & 0x7F) | (size >= 0x80 ? 0x80 : 0));
    if (size < 0x80) break;
  }
  return out + bytes;
}

std::string Entry(const std::string& key, const std::string& value) {
  return Field(14, Field(1, key) + Field(2, value));
}

class ModelMetadataTest : public testing::Test {
 protected:
  ~ModelMetadataTest() override { fs::remove(file_); }
  Result<std::map<std::string, std::string>> Read(const std::string& bytes) {
    std::ofstream(file_, std::ios::binary) << bytes;
    return ReadOnnxMetadata(file_);
  }
  const fs::path file_ = fs::temp_directory_path() / ("tandem-metadata-" + std::to_string(::getpid()) + ".onnx");
};

TEST_F(ModelMetadataTest, ReadsWhatTheFileSaysOfItself) {
  const auto read = Read(Field(2, "maker") + Entry("tandem.job", "7") + Field(7, "a graph") + Entry("author", "ann"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, UnorderedElementsAre(Pair("tandem.job", "7"), Pair("author", "ann")));
  EXPECT_THAT(*Read(Field(2, "maker")), IsEmpty());
}

TEST_F(ModelMetadataTest, PassesOverWhatNobodyWouldRead) {
  const auto read = Read(Entry("long", std::string(2000, 'x')) + Entry("bell", "\a") + Entry("", "v") +
                         Entry("line\nend", "v") + Entry("good", ""));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, UnorderedElementsAre(Pair("good", "")));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += Entry("key" + std::to_string(i), "v");
  EXPECT_EQ(Read(many)->size(), 100U);
}

TEST_F(ModelMetadataTest, NamesAFileThatIsNoModel) {
  const auto read = Read("\x72\xff\xff\xff\xff\x0f not a model");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find(file_.filename().string()), std::string::npos) << read.error().message;
  EXPECT_FALSE(ReadOnnxMetadata("/nowhere/model.onnx"));
}

}  // namespace
}  // namespace tandem
