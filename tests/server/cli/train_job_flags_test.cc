#include "server/cli/train_job_flags.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

// The job that the server is sent, on one line; what went wrong when there is none.
std::string Sent(const std::string& file, const JobFlags& flags) {
  const auto job = LayOverJob(file.empty() ? Json::Value() : *ParseStrictJson(file), flags);
  return job ? JsonLine(*job) : job.error().message;
}

TEST(TrainJobFlags, ModelDataAndEpochsAreEnough) {
  const std::string sent = Sent("", {.model = "digits", .data = "d.npz", .epochs = 3});
  EXPECT_EQ(sent, R"({"data":"d.npz","epochs":3,"model":"digits"})");
  EXPECT_TRUE(ParseTrainingJob(sent));
}

TEST(TrainJobFlags, EveryFlagHasItsPlace) {
  const std::string sent = Sent("", {.model = "digits",
                                     .model_version = "2",
                                     .data = "d.csv",
                                     .target = "label",
                                     .loss = "mse",
                                     .optimizer = "sgd",
                                     .lr = 0.25,
                                     .batch_size = 8,
                                     .epochs = {},
                                     .steps = 100,
                                     .eval_split = 0.5,
                                     .publish = "if_better",
                                     .name = "try",
                                     .seed = 18446744073709551615U,
                                     .fit = "1GiB",
                                     .priority = -5,
                                     .deterministic = true});
  EXPECT_EQ(
      sent,
      R"({"batch_size":8,"data":{"path":"d.csv","target":"label"},"deterministic":true,)"
      R"("evaluation":{"split":0.5},"loss":{"kind":"mse"},"memory":{"fit":"1GiB"},"model":{"name":"digits","version":"2"},"name":"try",)"
      R"("optimizer":{"kind":"sgd","lr":0.25},"priority":-5,"publish":"if_better","seed":18446744073709551615,)"
      R"("steps":100})");
  const auto read = ParseTrainingJob(sent);
  EXPECT_TRUE(read) << (read ? "" : read.error().ToError().message);
}

TEST(TrainJobFlags, WithoutFlagsTheFileIsSentAsItIs) {
  const std::string file = R"({"data":{"path":"d.npz"},"epochs":3,"model":"digits","unknown":[1]})";
  EXPECT_EQ(Sent(file, {}), file);
}

TEST(TrainJobFlags, FlagsOverrideTheFile) {
  const std::string file =
      R"({"model":{"name":"a","version":"1"},"data":{"path":"d.npz","inputs":{"x":"images"}},"epochs":3,)"
      R"("optimizer":{"kind":"sgd","momentum":0.9},"loss":{"kind":"huber","delta":2},)"
      R"("evaluation":{"data":"e.npz","patience":3}})";
  // The version was one of the other model's; the arrays of the inputs stay.
  EXPECT_THAT(Sent(file, {.model = "b"}), HasSubstr(R"("model":"b")"));
  EXPECT_THAT(Sent(file, {.model_version = "4"}), HasSubstr(R"("model":{"name":"a","version":"4"})"));
  EXPECT_THAT(Sent(file, {.data = "more.npz"}), HasSubstr(R"("data":{"inputs":{"x":"images"},"path":"more.npz"})"));
  EXPECT_THAT(Sent(file, {.lr = 0.5}), HasSubstr(R"("optimizer":{"kind":"sgd","lr":0.5,"momentum":0.9})"));
  EXPECT_THAT(Sent(file, {.eval_split = 0.25}), HasSubstr(R"("evaluation":{"patience":3,"split":0.25})"));
  const std::string steps = Sent(file, {.steps = 7});
  EXPECT_THAT(steps, HasSubstr(R"("steps":7)"));
  EXPECT_THAT(steps, ::testing::Not(HasSubstr("epochs")));
}

TEST(TrainJobFlags, AnotherKindBeginsItsSectionAnew) {
  const std::string file = R"({"loss":{"kind":"huber","delta":2},"optimizer":"sgd"})";
  EXPECT_EQ(Sent(file, {.loss = "mse"}), R"({"loss":{"kind":"mse"},"optimizer":"sgd"})");
  EXPECT_EQ(Sent(file, {.loss = "huber"}), R"({"loss":{"delta":2,"kind":"huber"},"optimizer":"sgd"})");
  EXPECT_THAT(Sent(file, {.optimizer = "adam", .lr = 0.5}), HasSubstr(R"("optimizer":{"kind":"adam","lr":0.5})"));
}

TEST(TrainJobFlags, SaysWhichFlagDoesNotFitTheFile) {
  EXPECT_THAT(Sent(R"({"optimizer":[1]})", {.lr = 0.5}), HasSubstr("--lr"));
  EXPECT_THAT(Sent(R"({"epochs":1})", {.model_version = "2"}), HasSubstr("--model-version needs --model"));
  EXPECT_THAT(Sent("[]", {.lr = 0.5}), HasSubstr("a job is a JSON object"));
}

}  // namespace
}  // namespace tandem::cli
