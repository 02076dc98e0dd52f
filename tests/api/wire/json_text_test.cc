#include "api/wire/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(JsonText, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(JsonString("a\"b\\c\n\t\r\b\f\x01z"), R"("a\"b\\c\n\t\r\b\f\u0001z")");
  EXPECT_EQ(JsonString(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonText, KeepsUtf8AsItIs) {
  EXPECT_EQ(JsonString("ü→🙂"), "\"ü→🙂\"");
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(JsonString("a\xFF\"b"), "\"a\xEF\xBF\xBD\\\"b\"");
  EXPECT_EQ(JsonString("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonText, TellsValidUtf8) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8("grün"));
  EXPECT_FALSE(IsValidUtf8("\xC0\x80"));
  EXPECT_FALSE(IsValidUtf8("cut \xE2\x82"));
}

TEST(JsonText, TellsWhatIsFitForALogLine) {
  EXPECT_TRUE(IsPrintableUtf8(""));
  EXPECT_TRUE(IsPrintableUtf8("grün \xC2\xA0 €"));
  for (const std::string_view text :
       {std::string_view("a\0b", 3), std::string_view("a\n"), std::string_view("\x7F"), std::string_view("\xC2\x80"),
        std::string_view("\xC2\x9F"), std::string_view("\xE2\x80\xA8"), std::string_view("\xFF")}) {
    EXPECT_FALSE(IsPrintableUtf8(text)) << Excerpt(text);
  }
}

TEST(Excerpt, KeepsShortTextUnchanged) {
  EXPECT_EQ(Excerpt("model-1"), "model-1");
  EXPECT_EQ(Excerpt(std::string(kExcerptBytes, 'a')), std::string(kExcerptBytes, 'a'));
}

TEST(Excerpt, CutsLongTextWithinTheLimit) {
  const std::string text = Excerpt(std::string(5000, 'a'));
  EXPECT_EQ(text.size(), kExcerptBytes);
  EXPECT_TRUE(text.ends_with("…"));
}

TEST(Excerpt, NeverCutsThroughACharacter) {
  for (int lead = 0; lead < 5; ++lead) {
    std::string text(lead, 'a');
    for (int i = 0; i < 60; ++i) text += "🙂";
    const std::string cut = Excerpt(text);
    EXPECT_LE(cut.size(), kExcerptBytes);
    EXPECT_TRUE(IsValidUtf8(cut));
  }
}

TEST(Excerpt, HidesControlCharactersAndInvalidBytes) {
  EXPECT_EQ(Excerpt("a\nb\xFF"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_TRUE(IsValidUtf8(Excerpt(std::string(300, '\xFE'))));
  EXPECT_LE(Excerpt(std::string(300, '\xFE')).size(), kExcerptBytes);
}

}  // namespace
}  // namespace tandem
