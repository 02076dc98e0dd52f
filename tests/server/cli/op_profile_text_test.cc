#include "server/cli/op_profile_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

constexpr const char* kAnswer =
    R"({"live":true,"total_ms":100.0,"ops":[
        {"kind":"Conv gradient","name":"a<b>","count":10,"total_ms":70.0,"typical_ms":7.0,"share":0.7,"gflop":1.0,"mb":2.0,
         "class":"heavy","why":"slower: m","interference":[
           {"model":"m","class":"heavy","why":"slower: m","ratio":1.2,"error":0.01,"runs":90.0},
           {"model":"other","class":"light","why":"no longer: other","ratio":1.01,"error":0.01,"runs":40.0}]},
        {"kind":"Conv","name":"a<b>","count":10,"total_ms":25.0,"typical_ms":2.5,"share":0.25,"gflop":1.0,"mb":2.0,
         "class":"heavy","why":"takes 2.50 ms","interference":[]},
        {"kind":"update","name":"","count":40,"total_ms":5.0,"typical_ms":0.1,"share":0.05,"gflop":0.0,"mb":0.0,
         "class":"light","why":"takes 0.10 ms","interference":null}]})";

OpProfileView Profile() {
  return ReadOpProfile(ParseStrictJson(kAnswer).value()).value();
}

TEST(OpProfileText, ShowsTheFirstAndCountsTheOthers) {
  EXPECT_EQ(OpProfileTable(Profile(), 1),
            "operator       node  count  total ms  typical ms   share  class  requests beside it               why\n"
            "Conv gradient  a<b>     10      70.0       7.000  70.0 %  heavy            1.20 × m         slower: m\n"
            "                                                          light        1.01 × other  no longer: other\n"
            "and 2 more, 30.0 % of the time: --top\n"
            "0.10 s in all, of the trainer that runs\n");
  EXPECT_EQ(OpProfileTable(Profile(), 20).find("more"), std::string::npos);
}

TEST(OpProfileText, DrawsHowTheTimeDivides) {
  const std::string svg = FlameGraph(Profile(), "Job 7 & <more>");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("Job 7 &amp; &lt;more&gt;"), std::string::npos);
  EXPECT_NE(svg.find("<title>gradients: 70.00 ms, 70.0 %</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>a&lt;b&gt;: 25.00 ms, 25.0 %, 10 times, heavy: takes 2.50 ms</title>"), std::string::npos)
      << svg;
  EXPECT_NE(svg.find("<title>update: 5.00 ms, 5.0 %</title>"), std::string::npos);
  EXPECT_EQ(svg.find("a<b>"), std::string::npos);
}

TEST(OpProfileText, AnEmptyProfileIsDrawnToo) {
  EXPECT_TRUE(FlameGraph({}, "nothing").ends_with("</svg>\n"));
}

TEST(OpProfileText, DoesNotTakeAnythingForAProfile) {
  const std::string sound = R"({"total_ms":1,"ops":[{"kind":"k","name":"n","count":1,"total_ms":1,"typical_ms":1,)"
                            R"("share":1,"class":"heavy","why":"w","interference":[]}]})";
  EXPECT_TRUE(ReadOpProfile(ParseStrictJson(sound).value()));
  std::string spoilt = sound;
  spoilt.replace(spoilt.find("[]"), 2, R"([{"model":"m"}])");
  const std::vector<std::string> texts = {
      "{}",  "[]", R"({"total_ms":1,"ops":[{}]})", R"({"total_ms":"1","ops":[]})", R"({"total_ms":1,"ops":[7]})",
      spoilt};
  for (const std::string& text : texts) {
    EXPECT_FALSE(ReadOpProfile(ParseStrictJson(text).value())) << text;
  }
}

}  // namespace
}  // namespace tandem::cli
