#include "server/auth/token_check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tandem {
namespace {

class TokenCheckTest : public ::testing::Test {
 protected:
  TokenCheckTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-token-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TokenCheckTest() override { std::filesystem::remove_all(folder_); }
  Result<TokenCheck> Load(const std::string& text) {
    std::ofstream(folder_ / "tokens") << text;
    return TokenCheck::Load(folder_ / "tokens");
  }

  std::filesystem::path folder_;
};

TEST_F(TokenCheckTest, AllowsAnyOfTheTokensAndNothingElse) {
  const auto check = Load("# ops\nalpha\r\n\nbeta\n");
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->Allows("Bearer alpha"));
  EXPECT_TRUE(check->Allows("bearer beta"));
  for (const char* wrong : {"", "Bearer ", "Bearer alph", "Bearer alphaa", "Bearer ALPHA", "Basic alpha", "alpha",
                            "Bearer # ops", "Bearer  alpha"}) {
    EXPECT_FALSE(check->Allows(wrong)) << wrong;
  }
}

TEST_F(TokenCheckTest, AnEmptyOrBrokenFileIsAnErrorRatherThanAnOpenDoor) {
  EXPECT_FALSE(Load(""));
  EXPECT_FALSE(Load("# only a comment\n"));
  EXPECT_FALSE(Load("three short words\n"));
  EXPECT_FALSE(Load("na/me token\n"));
  EXPECT_FALSE(Load("s3cr3t #production\n")) << "a remark is no token, and a token no name";
  EXPECT_FALSE(Load("name\ttoken\n"));
  EXPECT_FALSE(Load(" token\n"));
  EXPECT_FALSE(Load(std::string(65, 'n') + " token\n"));
  EXPECT_FALSE(TokenCheck::Load(folder_ / "absent"));
}

TEST_F(TokenCheckTest, WithoutTokensEverythingIsAllowed) {
  EXPECT_TRUE(TokenCheck().Allows(""));
  EXPECT_EQ(TokenCheck().NameOf(""), "default");
}

TEST_F(TokenCheckTest, ATokenMayHaveAName) {
  const auto check = Load("ann alpha\nbeta\nci-bot_2.0 gamma\nann delta\n");
  ASSERT_TRUE(check) << check.error().message;
  EXPECT_EQ(check->NameOf("Bearer alpha"), "ann");
  EXPECT_EQ(check->NameOf("Bearer beta"), "default");
  EXPECT_EQ(check->NameOf("Bearer gamma"), "ci-bot_2.0");
  EXPECT_EQ(check->NameOf("Bearer delta"), "ann") << "old and new while it is exchanged";
  for (const char* wrong : {"Bearer ann", "Bearer ann alpha", "Bearer ann:alpha", ""}) {
    EXPECT_EQ(check->NameOf(wrong), std::nullopt) << wrong;
  }
}

TEST_F(TokenCheckTest, AByteOrderMarkIsNoPartOfTheFirstToken) {
  const auto check = Load(
      "\xEF\xBB\xBF"
      "alpha\nbeta\n");
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->Allows("Bearer alpha"));
  EXPECT_TRUE(check->Allows("Bearer beta"));
}

}  // namespace
}  // namespace tandem
