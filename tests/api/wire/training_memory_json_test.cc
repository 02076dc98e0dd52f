#include "api/wire/training_memory_json.h"

#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem {
namespace {

const MemoryEstimate kEstimate{.persistent = {.weights = 10, .optimizer = 20, .data = 30, .framework = 40},
                               .ephemeral = 300,
                               .peak = "Conv 'a'",
                               .batch = 8};

TEST(TrainingMemoryJson, AnEstimateTellsItsParts) {
  EXPECT_EQ(JsonLine(MemoryEstimateToJson(kEstimate)),
            R"({"batch":8,"ephemeral":300,"peak":"Conv 'a'","persistent":{"data":30,"framework":40,"optimizer":20,)"
            R"("total":100,"weights":10}})");
}

TEST(TrainingMemoryJson, AJobThatIsToFitTellsWhatItsPeakCameFrom) {
  MemoryEstimate fitted = kEstimate;
  fitted.fit = FitEstimate{.kept = 900, .least = 200, .slowdown = 0.25};
  const Json::Value json = MemoryEstimateToJson(fitted);
  EXPECT_EQ(json["fit"]["kept"].asUInt64(), 900U);
  EXPECT_EQ(json["fit"]["least"].asUInt64(), 200U);
  EXPECT_EQ(json["fit"]["slowdown"].asDouble(), 0.25);
}

TEST(TrainingMemoryJson, TheErrorIsAShareOfWhatWasMeasured) {
  const Json::Value memory = JobMemoryToJson(kEstimate, MemoryUse{.persistent = 80, .ephemeral = 400});
  EXPECT_EQ(memory["measured"]["persistent"].asUInt64(), 80U);
  EXPECT_DOUBLE_EQ(memory["error"]["persistent"].asDouble(), 0.25);
  EXPECT_DOUBLE_EQ(memory["error"]["ephemeral"].asDouble(), -0.25);
}

TEST(TrainingMemoryJson, WhatIsNotKnownIsNull) {
  const Json::Value expected = JobMemoryToJson(kEstimate, std::nullopt);
  EXPECT_TRUE(expected["measured"].isNull());
  EXPECT_TRUE(expected["error"].isNull());
  const Json::Value measured = JobMemoryToJson(std::nullopt, MemoryUse{.persistent = 1, .ephemeral = 0});
  EXPECT_TRUE(measured["estimate"].isNull());
  EXPECT_TRUE(measured["error"].isNull());
  EXPECT_EQ(measured["measured"]["persistent"].asUInt64(), 1U);
}

TEST(TrainingMemoryJson, OfNothingNothingIsWrong) {
  EXPECT_EQ(EstimateError(5, 0), 0);
}

}  // namespace
}  // namespace tandem
