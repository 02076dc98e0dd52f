#include "runtimes/onnx/ort_library.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include "runtimes/onnx/ort_environment.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(OrtLibrary, TheSystemsLibraryIsFoundByDefault) {
  const auto library = OrtLibrary::Open("");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT((*library)->version(), ::testing::StartsWith("1."));
  EXPECT_GE((*library)->api_version(), kOldestOrtApi);
  EXPECT_THAT((*library)->path(), HasSubstr("libonnxruntime"));
  EXPECT_THAT((*library)->providers(), Contains("CPUExecutionProvider"));
  EXPECT_TRUE((*library)->HasProvider("CPUExecutionProvider"));
  EXPECT_FALSE((*library)->HasProvider("AbacusExecutionProvider"));
}

TEST(OrtLibrary, AMissingFileIsNamedTogetherWithWhatToInstall) {
  const auto library = OrtLibrary::Open("/nowhere/libonnxruntime.so");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(library.error().message, AllOf(HasSubstr("/nowhere/libonnxruntime.so"),
                                             HasSubstr("install libonnxruntime"), HasSubstr("--ort-library")));
}

TEST(OrtLibrary, AnotherLibraryIsNotTakenForOnnxRuntime) {
  const auto library = OrtLibrary::Open("libm.so.6");
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, AllOf(HasSubstr("libm.so.6"), HasSubstr("is not an ONNX Runtime")));
}

TEST(OrtLibrary, ATooOldLibraryIsRefusedNamingBothVersions) {
  const auto library = OrtLibrary::Open(FAKE_OLD_RUNTIME);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(library.error().message, AllOf(HasSubstr("1.10.0"), HasSubstr("1.17 or later")));
}

TEST(OrtLibrary, TheProgramItselfDoesNotNeedOnnxRuntime) {
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    const ElfW(Dyn)* strings = _DYNAMIC;
    while (strings->d_tag != DT_STRTAB) ++strings;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF keeps addresses as numbers.
    const std::string name = reinterpret_cast<const char*>(strings->d_un.d_ptr) + entry->d_un.d_val;
    EXPECT_THAT(name, ::testing::Not(HasSubstr("onnxruntime")));
  }
}

TEST(OrtEnvironment, ASecondOneIsRefusedWhileTheFirstLives) {
  const auto create = [](int threads) {
    auto library = OrtLibrary::Open("");
    EXPECT_TRUE(library) << library.error().message;
    return OrtEnvironment::Create(std::move(*library), {.intra_op_threads = threads});
  };
  {
    const auto first = create(1);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = create(1);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  }
  const auto none = create(0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(create(2));
}

}  // namespace
}  // namespace tandem
