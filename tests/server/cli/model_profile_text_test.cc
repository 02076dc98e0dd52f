#include "server/cli/model_profile_text.h"

#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

Json::Value Answer() {
  return ParseStrictJson(
             R"({"model":"m","version":"3","inputs":[{"name":"x","datatype":"FP32","shape":[1,64]}],"runs":10,
                 "run_ms":1.5,"unread":0,"total_ms":12.0,"ops":[
          {"kind":"Conv","name":"c1","provider":"CPUExecutionProvider","count":10,"total_ms":9.0,"typical_ms":0.9,"share":0.75},
          {"kind":"Relu","name":"r1","provider":"CPUExecutionProvider","count":10,"total_ms":3.0,"typical_ms":0.3,"share":0.25}],
                 "training":[{"job":7,"kind":"Conv gradient","name":"n1","class":"heavy","why":"takes 7.00 ms",
                              "ratio":1.21,"error":0.01,"runs":90.0}]})")
      .value();
}

TEST(ModelProfileText, ShowsNodesARunAndTraining) {
  EXPECT_EQ(ModelProfileTable(ReadModelProfile(Answer()).value(), 1),
            "operator  node              provider  count  total ms  typical ms   share\n"
            "Conv        c1  CPUExecutionProvider     10      9.00       0.900  75.0 %\n"
            "and 1 more, 25.0 % of the time: --top\n"
            "m version 3: a run typically takes 1.50 ms, its operators 1.20 ms on average; 10 runs on x [1,64]\n"
            "\n"
            "training operator  node  job  class  requests beside it            why\n"
            "Conv gradient        n1    7  heavy              1.21 ×  takes 7.00 ms\n");
}

TEST(ModelProfileText, SaysThatNothingIsKnownOfTraining) {
  Json::Value answer = Answer();
  answer["training"] = Json::Value(Json::arrayValue);
  const std::string text = ModelProfileTable(ReadModelProfile(answer).value(), 20);
  EXPECT_NE(text.find("no trainer is known to slow it"), std::string::npos) << text;
  EXPECT_EQ(text.find("more"), std::string::npos) << text;
}

TEST(ModelProfileText, AModelIsDrawnWithoutPartsOfAStep) {
  const std::string svg = FlameGraph(ReadModelProfile(Answer()).value().ops, "Model m");
  EXPECT_NE(svg.find("<title>Conv: 9.00 ms, 75.0 %</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>c1: 9.00 ms, 75.0 %, 10 times, CPUExecutionProvider</title>"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("forward"), std::string::npos);
}

TEST(ModelProfileText, DoesNotTakeAnythingForAProfile) {
  for (const char* gone : {"model", "inputs", "runs", "run_ms", "ops", "training"}) {
    Json::Value answer = Answer();
    answer.removeMember(gone);
    EXPECT_FALSE(ReadModelProfile(answer)) << gone;
  }
  Json::Value answer = Answer();
  answer["ops"][0].removeMember("provider");
  EXPECT_FALSE(ReadModelProfile(answer));
  EXPECT_FALSE(ReadModelProfile(Json::Value(7)));
}

}  // namespace
}  // namespace tandem::cli
