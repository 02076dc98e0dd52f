#include "runtimes/onnx/external_data.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/onnx_writer.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest() {
    fakes::WriteFile(folder_ / "w.bin", std::string(100, 'w'));
    fakes::WriteFile(folder_ / "sub" / "v.bin", std::string(50, 'v'));
    fakes::WriteFile(root_.path() / "secret", "secret");
    fs::create_directory(root_.path() / "elsewhere");
    fakes::WriteFile(root_.path() / "elsewhere" / "w.bin", std::string(100, 'w'));
  }

  std::string Refusal(const std::string& location) {
    const auto path = ConfineLocation(folder_, location);
    if (path) return "accepted";
    EXPECT_EQ(path.error().code, ErrorCode::kInvalidArgument);
    return path.error().message;
  }

  TempFolder root_;
  fs::path folder_ = root_.path() / "model" / "1";
};

TEST_F(ExternalDataTest, FilesInTheModelsFolderAreTaken) {
  EXPECT_TRUE(ConfineLocation(folder_, "w.bin"));
  EXPECT_TRUE(ConfineLocation(folder_, "./w.bin"));
  EXPECT_TRUE(ConfineLocation(folder_, "sub/v.bin"));
  fs::create_symlink("sub/v.bin", folder_ / "link");
  EXPECT_TRUE(ConfineLocation(folder_, "link"));
}

TEST_F(ExternalDataTest, EveryWayOutOfTheFolderIsRefused) {
  EXPECT_THAT(Refusal("/etc/passwd"), HasSubstr("absolute"));
  EXPECT_THAT(Refusal((folder_ / "w.bin").string()), HasSubstr("absolute"));
  EXPECT_THAT(Refusal("../../secret"), HasSubstr("'..'"));
  EXPECT_THAT(Refusal("sub/../w.bin"), HasSubstr("'..'"));
  EXPECT_THAT(Refusal(std::string("w.bin\0/../../secret", 19)), HasSubstr("NUL"));
  EXPECT_THAT(Refusal(""), HasSubstr("empty"));
  EXPECT_THAT(Refusal("sub"), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal("."), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal("missing.bin"), HasSubstr("cannot find"));
  EXPECT_THAT(Refusal("*/_ORT_MEM_ADDR_/*"), HasSubstr("not the name of a file"));

  fs::create_symlink(root_.path() / "secret", folder_ / "absolute_link");
  fs::create_symlink("../../secret", folder_ / "relative_link");
  fs::create_symlink("relative_link", folder_ / "link_to_link");
  fs::create_symlink("../../elsewhere", folder_ / "folder_link");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(Refusal("absolute_link"), HasSubstr("link outside"));
  EXPECT_THAT(Refusal("relative_link"), HasSubstr("link outside"));
  EXPECT_THAT(Refusal("link_to_link"), HasSubstr("link outside"));
  EXPECT_THAT(Refusal("folder_link/w.bin"), HasSubstr("link outside"));
  EXPECT_NE(Refusal("loop"), "accepted");
}

TEST_F(ExternalDataTest, AFolderWhoseNameBeginsAlikeIsOutside) {
  fakes::WriteFile(root_.path() / "model" / "10" / "w.bin", "x");
  fs::create_symlink("../10/w.bin", folder_ / "sibling");
  EXPECT_THAT(Refusal("sibling"), HasSubstr("link outside"));
}

TEST_F(ExternalDataTest, LongAndStrangeLocationsAreEchoedShortAndReadable) {
  const std::string message = Refusal("/" + std::string(4000, 'a') + "\xff\x01");
  EXPECT_LT(message.size(), 250U);
  EXPECT_THAT(Refusal("/\xff\n"), HasSubstr("'/? '"));
}

TEST_F(ExternalDataTest, DataMustLieInsideItsFile) {
  ExternalTensor tensor{.name = "w", .byte_size = 100, .location = "w.bin"};
  EXPECT_TRUE(CheckExternalData(folder_, {&tensor, 1}));
  tensor.offset = 1;
  const auto beyond = CheckExternalData(folder_, {&tensor, 1});
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, HasSubstr("needs 100 bytes at offset 1"));
  tensor.byte_size = 10;
  EXPECT_TRUE(CheckExternalData(folder_, {&tensor, 1}));
  tensor.length = 100;
  EXPECT_FALSE(CheckExternalData(folder_, {&tensor, 1}));
  tensor.length = 0;
  tensor.offset = std::uint64_t{1} << 63;
  EXPECT_FALSE(CheckExternalData(folder_, {&tensor, 1}));
}

TEST_F(ExternalDataTest, AModelMustLieInsideItsRoot) {
  const fs::path repository = root_.path() / "model";
  fakes::WriteFile(folder_ / "model.onnx", "x");
  fakes::WriteFile(root_.path() / "elsewhere" / "model.onnx", "x");
  EXPECT_TRUE(ConfineModel(folder_ / "model.onnx", repository));
  EXPECT_TRUE(ConfineModel(folder_ / "model.onnx", ""));

  fs::create_directory_symlink("1", repository / "2");
  EXPECT_TRUE(ConfineModel(repository / "2" / "model.onnx", repository));
  fs::create_directory_symlink("../elsewhere", repository / "3");
  EXPECT_FALSE(ConfineModel(repository / "3" / "model.onnx", repository));
  fs::create_directory(repository / "4");
  fs::create_symlink("../../elsewhere/model.onnx", repository / "4" / "model.onnx");
  EXPECT_FALSE(ConfineModel(repository / "4" / "model.onnx", repository));

  const auto missing = ConfineModel(repository / "5" / "model.onnx", repository);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tandem
