#include "server/cli/pretty_json.h"

#include <string>

#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

std::string Pretty(const std::string& text) {
  return PrettyJson(*ParseStrictJson(text));
}

TEST(PrettyJson, IndentsObjectsAndKeepsPlainListsOnALine) {
  EXPECT_EQ(Pretty(R"({"b":[1,2.5,"x"],"a":{"lr":0.1,"e":{}},"c":[{"d":null}]})"),
            "{\n"
            "  \"a\": {\n"
            "    \"e\": {},\n"
            "    \"lr\": 0.1\n"
            "  },\n"
            "  \"b\": [1,2.5,\"x\"],\n"
            "  \"c\": [\n"
            "    {\n"
            "      \"d\": null\n"
            "    }\n"
            "  ]\n"
            "}");
}

TEST(PrettyJson, ReadsBackAsTheSame) {
  for (const char* text :
       {"{}", "[]", "[null, 0.1, true]", R"(["\u0001\"é", [{}]])", R"({"\"":[[],[1],{}],"n":18446744073709551615})"}) {
    const auto value = ParseStrictJson(text);
    ASSERT_TRUE(value) << text << ": " << value.error().message;
    const auto again = ParseStrictJson(PrettyJson(*value));
    ASSERT_TRUE(again) << text << ": " << again.error().message;
    EXPECT_EQ(*again, *value) << text;
  }
}

}  // namespace
}  // namespace tandem::cli
