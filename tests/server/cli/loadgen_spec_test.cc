#include "server/cli/loadgen_spec.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LoadSpecTest : public ::testing::Test {
 protected:
  LoadSpecTest() : file_(std::filesystem::temp_directory_path() / ("spec_" + std::to_string(::getpid()) + ".json")) {}
  ~LoadSpecTest() override { std::filesystem::remove(file_); }

  Status Read(const std::string& text) {
    std::ofstream(file_) << text;
    run_ = {};
    return ReadLoadSpec(file_, run_);
  }

  const std::filesystem::path file_;
  RunOptions run_;
};

TEST_F(LoadSpecTest, EveryFieldArrives) {
  const Status read = Read(R"({
    "url": "grpc://host:9", "metrics_url": "http://host:8", "duration": 20, "warmup": 2, "percentile": 95,
    "confidence": 0.9, "seed": 7, "connections": 5, "channels": 3, "request_timeout": 1.5,
    "models": [
      {"model": "a", "version": "2", "name": "first", "arrivals": "constant", "rate": 30, "slo_ms": 100,
       "send_slo": false, "batch": 8, "priority": 1, "format": "json",
       "inputs": {"x": "@x.npy", "y": [[1, 2]], "z": {"random": 9}}, "shapes": {"z": [1, 3]},
       "expect": {"out": "y.npy"}, "tolerance": 0.5, "check_every": 10},
      {"model": "b", "users": 4, "expect": "first"},
      {"model": "c", "rate": 1, "expect": "golden.npz"}
    ]})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(run_.client.url, "grpc://host:9");
  EXPECT_EQ(run_.metrics_url, "http://host:8");
  EXPECT_EQ(run_.duration, 20);
  EXPECT_EQ(run_.warmup, 2);
  EXPECT_EQ(run_.percentile, 95);
  EXPECT_EQ(run_.confidence, 0.9);
  EXPECT_EQ(run_.seed, 7U);
  EXPECT_EQ(run_.connections, 5U);
  EXPECT_EQ(run_.channels, 3U);
  EXPECT_EQ(run_.request_timeout, 1.5);
  ASSERT_EQ(run_.models.size(), 3U);
  const ModelOptions& a = run_.models[0];
  EXPECT_EQ(a.model + a.version + a.name + a.arrivals + a.format, "a2firstconstantjson");
  EXPECT_EQ(a.rate, 30);
  EXPECT_EQ(a.slo_ms, 100);
  EXPECT_FALSE(a.send_slo);
  EXPECT_EQ(a.batch.size, 8U);
  EXPECT_EQ(a.batch.where, "/models/0/batch");
  EXPECT_EQ(a.priority, 1U);
  ASSERT_EQ(a.choices.inputs.size(), 3U);
  EXPECT_EQ(a.choices.inputs[0].file, "x.npy");
  EXPECT_EQ(a.choices.inputs[1].json[0][1].asInt(), 2);
  EXPECT_EQ(a.choices.inputs[2].seed, 9U);
  EXPECT_EQ(a.choices.inputs[2].where, "/models/0/inputs/z");
  EXPECT_THAT(a.choices.shapes[0].shape, ElementsAre(1, 3));
  EXPECT_EQ(a.expect.files[0].second, "y.npy");
  EXPECT_EQ(a.expect.tolerance, 0.5);
  EXPECT_EQ(a.expect.every, 10U);
  EXPECT_EQ(run_.models[1].users, 4);
  EXPECT_TRUE(run_.models[1].expect.first);
  EXPECT_EQ(run_.models[2].expect.npz, "golden.npz");
}

TEST_F(LoadSpecTest, WhatIsNotSaidStaysAsItWas) {
  ASSERT_TRUE(Read(R"({"models": [{"model": "a", "rate": 1}]})"));
  EXPECT_EQ(run_.duration, RunOptions{}.duration);
  EXPECT_EQ(run_.client.url, ClientOptions{}.url);
  EXPECT_EQ(run_.models[0].format, "binary");
  EXPECT_FALSE(run_.models[0].expect.any());
}

TEST_F(LoadSpecTest, AllMistakesAreToldAtOnce) {
  const Status read = Read(R"({"duration": 0, "models": [{"model": "a", "rate": "x", "speed": 1}, {"rate": 1}]})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  for (const char* part :
       {"/duration is 0", "/models/0/rate is \"x\"", "/models/0/speed is not known", "/models/1/model"}) {
    EXPECT_THAT(read.error().message, HasSubstr(part));
  }
  const Status both =
      Read(R"({"models": [{"model": "a", "rate": 1, "inputs": {"x": "@x.npy"}, "shapes": {"x": [1]}}]})");
  EXPECT_THAT(both.error().message, HasSubstr("/models/0/shapes/x is given, but the file 'x.npy'"));
  std::string many = R"({"models": [{"model": "a", "rate": 1)";
  for (int i = 0; i < 1000; ++i) many += ",\"x" + std::to_string(i) + "\":1";
  const Status bounded = Read(many + "}]}");
  EXPECT_THAT(bounded.error().message, HasSubstr("and 980 more"));
}

}  // namespace
}  // namespace tandem::cli
