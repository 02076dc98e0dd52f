#include "api/wire/training_job_json.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr const char* kFull = R"({
  "name": "digits, again", "kind": "finetune", "model": {"name": "digits", "version": "1"}, "output": "logits",
  "data": {"kind": "arrays", "path": "digits.npz", "inputs": {"image": "x"}, "target": "labels"},
  "loss": {"kind": "huber", "delta": 2},
  "optimizer": {"kind": "sgd", "lr": 0.1, "weight_decay": 0.5, "momentum": 0.9, "nesterov": true},
  "schedule": {"kind": "step", "warmup_steps": 10, "step_size": 30, "gamma": 0.5},
  "trainable": ["classifier.*", "bias"], "replace_head": {"output": "logits", "classes": 10},
  "update_batch_norm": true, "batch_size": 64, "steps": 100, "accumulate": 2, "clip_norm": 1,
  "evaluation": {"split": 0.1, "every_steps": 50, "patience": 3},
  "checkpoint": {"every_steps": 100, "every_seconds": 30, "keep": 5},
  "publish": "if_better", "priority": -2, "seed": 18446744073709551615, "deterministic": true, "threads": 2,
  "memory": "1.5GiB"})";

constexpr const char* kLeast = R"({"model": "digits", "data": "digits.npz", "epochs": 3})";

// The least job with members put in place of its own; null takes one away.
std::expected<TrainingJob, JobMistakes> With(std::string_view members) {
  Json::Value json = ParseStrictJson(kLeast).value();
  const Json::Value changes = ParseStrictJson(members).value();
  for (const std::string& name : changes.getMemberNames()) {
    if (changes[name].isNull()) {
      json.removeMember(name);
    } else {
      json[name] = changes[name];
    }
  }
  return ReadTrainingJob(json);
}

// The messages of the mistakes; none for a job that is taken.
std::vector<std::string> MistakesWith(std::string_view members) {
  const auto job = With(members);
  std::vector<std::string> messages;
  if (!job) {
    for (const JsonMistake& mistake : job.error().list) messages.push_back(mistake.message);
  }
  return messages;
}

TEST(TrainingJobJson, EveryFieldReachesTheJob) {
  const auto job = ParseTrainingJob(kFull);
  ASSERT_TRUE(job) << job.error().ToError().message;
  const TrainingJob expected{
      .name = "digits, again",
      .model = "digits",
      .model_version = "1",
      .output = "logits",
      .data = {.path = "digits.npz", .inputs = {{"image", "x"}}, .target = "labels"},
      .loss = {.kind = LossKind::kHuber, .delta = 2},
      .optimizer =
          {.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .weight_decay = 0.5, .momentum = 0.9, .nesterov = true},
      .schedule = {.kind = ScheduleKind::kStep, .warmup_steps = 10, .every_steps = 30, .factor = 0.5},
      .trainable = {"classifier.*", "bias"},
      .replace_head = HeadSpec{.output = "logits", .classes = 10},
      .update_batch_norm = true,
      .batch_size = 64,
      .steps = 100,
      .accumulate = 2,
      .clip_norm = 1,
      .evaluation = {.split = 0.1, .every_steps = 50, .patience = 3},
      .checkpoint = {.every_steps = 100, .every_seconds = 30, .keep = 5},
      .publish = PublishRule::kIfBetter,
      .priority = -2,
      .seed = 18446744073709551615u,
      .deterministic = true,
      .threads = 2,
      .memory = 1'610'612'736,
  };
  EXPECT_TRUE(*job == expected) << JsonLine(TrainingJobToJson(*job));
}

TEST(TrainingJobJson, ModelDataAndLengthAreEnough) {
  const auto job = ParseTrainingJob(kLeast);
  ASSERT_TRUE(job) << job.error().ToError().message;
  TrainingJob expected{.name = "digits", .model = "digits", .data = {.path = "digits.npz"}, .epochs = 3};
  expected.optimizer.weight_decay = 0.01;  // As torch.optim.AdamW has it.
  EXPECT_TRUE(*job == expected) << JsonLine(TrainingJobToJson(*job));
}

TEST(TrainingJobJson, ShortFormsMeanTheSameAsLongOnes) {
  const auto brief = With(R"({"loss": "l1", "optimizer": "adam", "schedule": "cosine", "trainable": "fc.*",
                              "model": {"name": "digits", "version": 7}, "memory": "2GB"})");
  const auto full = With(R"({"loss": {"kind": "l1"}, "optimizer": {"kind": "adam", "momentum": 0, "nesterov": false},
                             "schedule": {"kind": "cosine"}, "trainable": ["fc.*"],
                             "model": {"name": "digits", "version": "7"}, "memory": 2000000000,
                             "data": {"kind": "arrays", "path": "digits.npz"}, "kind": "finetune"})");
  ASSERT_TRUE(brief) << brief.error().ToError().message;
  ASSERT_TRUE(full) << full.error().ToError().message;
  EXPECT_TRUE(*brief == *full);
  EXPECT_EQ(JsonLine(TrainingJobToJson(*brief)), JsonLine(TrainingJobToJson(*full)));
  EXPECT_EQ(brief->optimizer.weight_decay, 0);
}

TEST(TrainingJobJson, ABoundToFitIntoIsBytesToo) {
  const auto held = With(R"({"memory": "1GiB"})");
  const auto fitted = With(R"({"memory": {"fit": "1GiB"}})");
  ASSERT_TRUE(held && fitted);
  EXPECT_FALSE(held->fit);
  EXPECT_TRUE(fitted->fit);
  EXPECT_EQ(fitted->memory, held->memory);
  EXPECT_EQ(TrainingJobToJson(*fitted)["memory"]["fit"].asUInt64(), 1U << 30);
  const auto free = With(R"({"memory": "fit"})");
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->fit);
  EXPECT_FALSE(free->memory);
  EXPECT_EQ(TrainingJobToJson(*free)["memory"].asString(), "fit");
}

TEST(TrainingJobJson, TheKindOfDataFollowsFromItsPath) {
  EXPECT_EQ(With(R"({"data": "a/b.npz"})")->data.kind, DataKind::kArrays);
  EXPECT_EQ(With(R"({"data": {"path": "b.csv", "columns": ["u", "v"], "target": "w"}})")->data.kind, DataKind::kCsv);
  EXPECT_THAT(MistakesWith(R"({"data": "folder"})"), ElementsAre(HasSubstr("/data/kind is missing")));
  EXPECT_THAT(MistakesWith(R"({"data": {"kind": "csv", "path": "a.npz"}})"),
              ElementsAre(HasSubstr("/data/kind is \"csv\", but /data/path is \"a.npz\"")));
  const auto images = With(R"({"data": {"kind": "images", "path": "flowers", "mean": [0.5], "std": [0.25]}})");
  ASSERT_TRUE(images) << images.error().ToError().message;
  EXPECT_EQ(images->data.deviation, std::vector<double>{0.25});
  const auto synthetic = With(R"({"data": {"kind": "synthetic", "samples": 100, "classes": 10}})");
  ASSERT_TRUE(synthetic) << synthetic.error().ToError().message;
  EXPECT_EQ(synthetic->data.samples, 100);
}

TEST(TrainingJobJson, AllMistakesAreToldAtOnceEachWithItsPlaceAndValue) {
  const auto job = ParseTrainingJob(R"({"model": 5, "optimizer": {"lr": -1, "beta": 2}, "epochs": 1, "steps": 0,
                                        "loss": "hinge", "colour": "red", "batch_size": 1.5})");
  ASSERT_FALSE(job);
  std::vector<std::string> pointers;
  for (const JsonMistake& mistake : job.error().list) pointers.push_back(mistake.pointer);
  EXPECT_THAT(pointers, UnorderedElementsAre("/model", "/data", "/optimizer/lr", "/optimizer/beta", "/steps", "/steps",
                                             "/loss", "/colour", "/batch_size"));
  const Error error = job.error().ToError();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("/optimizer/lr is -1; it must be a number above 0 and at most 1000; /optimizer/"
                                       "beta is not known: its value is 2"));
  const Json::Value problems = job.error().ToJson();
  ASSERT_EQ(problems.size(), 9u);
  EXPECT_EQ(problems[0]["pointer"], "/model");
  EXPECT_THAT(problems[0]["message"].asString(), HasSubstr("/model is 5; it must be a name"));
}

TEST(TrainingJobJson, WhatIsNeededIsMissed) {
  EXPECT_THAT(MistakesWith(R"({"model": null, "data": null, "epochs": null})"),
              UnorderedElementsAre(HasSubstr("/model is missing"), HasSubstr("/data is missing"),
                                   HasSubstr("/epochs is missing: a job needs epochs or steps")));
  EXPECT_THAT(MistakesWith(R"({"model": {}})"), ElementsAre(HasSubstr("/model/name is missing")));
  EXPECT_THAT(MistakesWith(R"({"data": {"kind": "images"}})"), ElementsAre(HasSubstr("/data/path is missing")));
  EXPECT_THAT(MistakesWith(R"({"data": {"kind": "synthetic"}})"), ElementsAre(HasSubstr("/data/samples is missing")));
  EXPECT_THAT(MistakesWith(R"({"schedule": "step"})"), ElementsAre(HasSubstr("/schedule/step_size is missing")));
  EXPECT_THAT(MistakesWith(R"({"replace_head": {}})"), ElementsAre(HasSubstr("/replace_head/classes is missing")));
  EXPECT_THAT(MistakesWith(R"({"evaluation": {"patience": 3}})"),
              ElementsAre(HasSubstr("/evaluation/split is missing")));
}

struct Bad {
  const char* members;
  const char* says;
};

TEST(TrainingJobJson, ContradictionsAreRefused) {
  for (const auto& [members, says] : {
           Bad{R"({"steps": 5})", "/steps is 5, but /epochs is 3: give one of them"},
           Bad{R"({"evaluation": {"split": 0.1, "data": "b.npz"}})", "/evaluation/split is 0.1, but there is data"},
           Bad{R"({"optimizer": {"kind": "sgd", "nesterov": true}})",
               "/optimizer/nesterov is true, but there is no momentum"},
           Bad{R"({"optimizer": {"momentum": 0.9}})",
               "/optimizer/momentum is 0.9, but it belongs to the kind sgd, and this is adamw"},
           Bad{R"({"optimizer": {"kind": "sgd", "betas": [0.5, 0.9]}})", "/optimizer/betas is [0.5,0.9], but sgd has"},
           Bad{R"({"optimizer": {"kind": "sgd", "eps": 0.5}})", "/optimizer/eps is 0.5, but sgd has none"},
           Bad{R"({"loss": {"kind": "mse", "delta": 2}})", "/loss/delta is 2, but it belongs to the kind huber"},
           Bad{R"({"loss": {"kind": "bce", "label_smoothing": 0.1}})", "/loss/label_smoothing is 0.1, but it belongs"},
           Bad{R"({"schedule": {"floor": 0.1}})", "/schedule/floor is 0.1, but it belongs to the kind cosine"},
           Bad{R"({"schedule": {"kind": "cosine", "gamma": 0.5}})",
               "/schedule/gamma is 0.5, but it belongs to the kind"},
           Bad{R"({"epochs": null, "steps": 10, "schedule": {"warmup_steps": 10}})",
               "/schedule/warmup_steps is 10, but /steps is 10"},
           Bad{R"({"publish": "if_better"})", "/publish is \"if_better\", but there is no evaluation"},
           Bad{R"({"checkpoint": {"every_seconds": 0}})", "/checkpoint/every_seconds is 0, but every_steps is 0, too"},
           Bad{R"({"data": {"path": "a.npz", "mean": [0], "std": [1]}})",
               "/data/mean is [0], but data of kind arrays has no such field"},
           Bad{R"({"data": {"path": "a.npz", "columns": ["a"]}})", "/data/columns is [\"a\"], but data of kind arrays"},
           Bad{R"({"data": {"path": "a.csv", "inputs": {"a": "b"}}})",
               "/data/inputs is {\"a\":\"b\"}, but data of kind"},
           Bad{R"({"data": {"path": "a.csv", "columns": ["a", "y"]}})", "/data/columns is [\"a\",\"y\"], but \"y\" is"},
           Bad{R"({"data": {"path": "a.csv", "samples": 5}})", "/data/samples is 5, but data of kind csv"},
           Bad{R"({"data": {"kind": "images", "path": "a", "target": "t"}})",
               "/data/target is \"t\", but data of kind"},
           Bad{R"({"data": {"kind": "images", "path": "a", "mean": [0, 1], "std": [1]}})",
               "/data/std is [1], but mean has 2 channels"},
           Bad{R"({"data": {"kind": "images", "path": "a", "mean": [0, 1]}})", "/data/std is missing"},
           Bad{R"({"data": {"kind": "synthetic", "path": "a", "samples": 5}})",
               "/data/path is \"a\", but data of kind"},
           Bad{R"({"evaluation": {"data": {"path": "a.npz", "columns": "c"}}})",
               "/evaluation/data/columns is \"c\", but"},
       }) {
    EXPECT_THAT(MistakesWith(members), Contains(HasSubstr(says))) << members;
  }
}

TEST(TrainingJobJson, EveryValueIsBounded) {
  const std::string long_text(256, 'x');
  for (const std::string members : {
           R"({"name": ""})",
           R"({"name": "a/b"})",
           R"({"name": ".a"})",
           R"({"name": "a\nb"})",
           R"({"name": "a\u0000b"})",
           R"({"name": 5})",
           R"({"kind": "python"})",
           R"({"model": "../x"})",
           R"({"model": {"name": "a", "version": 0}})",
           R"({"model": {"name": "a", "version": "01"}})",
           R"({"model": {"name": "a", "version": "1234567890123456789"}})",
           R"({"model": {"name": "a", "version": 1.5}})",
           R"({"data": 5})",
           R"({"data": ""})",
           R"({"data": "/etc/a.npz"})",
           R"({"data": "../a.npz"})",
           R"({"data": "a/../../b.npz"})",
           R"({"data": "a\u0000.npz"})",
           R"({"data": {"path": "a.npz", "inputs": {}}})",
           R"({"data": {"path": "a.npz", "inputs": {"": "x"}}})",
           R"({"data": {"path": "a.npz", "inputs": {"x": ""}}})",
           R"({"data": {"path": "a.npz", "target": ""}})",
           R"({"data": {"path": "a.csv", "columns": []}})",
           R"({"data": {"path": "a.csv", "columns": ["a", 5]}})",
           R"({"data": {"kind": "images", "path": "a", "mean": [0], "std": [0]}})",
           R"({"data": {"kind": "images", "path": "a", "mean": [0, 0, 0, 0, 0], "std": [1]}})",
           R"({"data": {"kind": "synthetic", "samples": 0}})",
           R"({"data": {"kind": "video", "path": "a"}})",
           R"({"loss": 5})",
           R"({"loss": {"kind": "huber", "delta": 0}})",
           R"({"loss": {"label_smoothing": 1}})",
           R"({"optimizer": {"lr": 0}})",
           R"({"optimizer": {"lr": "0.1"}})",
           R"({"optimizer": {"lr": 1e9}})",
           R"({"optimizer": {"weight_decay": -1}})",
           R"({"optimizer": {"kind": "sgd", "momentum": 1}})",
           R"({"optimizer": {"betas": [0.9]}})",
           R"({"optimizer": {"betas": [0.9, 1]}})",
           R"({"optimizer": {"eps": 0}})",
           R"({"schedule": {"warmup_steps": -1}})",
           R"({"schedule": {"kind": "cosine", "floor": 2}})",
           R"({"schedule": {"kind": "step", "step_size": 0}})",
           R"({"trainable": []})",
           R"({"trainable": [""]})",
           R"({"replace_head": 10})",
           R"({"replace_head": {"classes": 0}})",
           R"({"batch_size": 0})",
           R"({"batch_size": 9999999999})",
           R"({"epochs": 0})",
           R"({"epochs": -1})",
           R"({"epochs": 2.5})",
           R"({"accumulate": 0})",
           R"({"clip_norm": -1})",
           R"({"evaluation": {"split": 0}})",
           R"({"evaluation": {"split": 1}})",
           R"({"evaluation": 0.1})",
           R"({"evaluation": {"split": 0.1, "patience": -1}})",
           R"({"checkpoint": {"keep": 0}})",
           R"({"checkpoint": {"every_seconds": -1}})",
           R"({"publish": "always"})",
           R"({"priority": 1001})",
           R"({"seed": -1})",
           R"({"seed": 1.5})",
           R"({"deterministic": 1})",
           R"({"threads": -1})",
           R"({"memory": 5})",
           R"({"memory": {}})",
           R"({"memory": {"fit": 5}})",
           R"({"memory": {"fit": true}})",
           R"({"memory": {"fit": "1GiB", "least": 3}})",
           R"({"memory": "2"})",
           R"({"memory": "2 Gb"})",
           R"({"memory": "-2GB"})",
           R"({"memory": "infB"})",
           R"({"memory": "1e3GB"})",
           R"({"update_batch_norm": "yes"})",
           R"({"output": ""})",
       }) {
    EXPECT_THAT(MistakesWith(members), SizeIs(1)) << members;
  }
  EXPECT_THAT(MistakesWith(R"({"name": ")" + long_text + "\"}"), SizeIs(1));
  EXPECT_THAT(MistakesWith(R"({"data": ")" + std::string(1025, 'x') + ".npz\"}"), SizeIs(1));
  EXPECT_THAT(MistakesWith(R"({"trainable": [")" + long_text + "\"]}"), SizeIs(1));
}

TEST(TrainingJobJson, ListsAreBounded) {
  Json::Value json = ParseStrictJson(kLeast).value();
  for (int i = 0; i < 1001; ++i) json["trainable"].append("x");
  EXPECT_FALSE(ReadTrainingJob(json));
  json["trainable"].resize(1000);
  EXPECT_TRUE(ReadTrainingJob(json));
  for (int i = 0; i < 1000; ++i) json["unknown" + std::to_string(i)] = i;
  const auto job = ReadTrainingJob(json);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().list.size(), JobMistakes::kMost);
  EXPECT_EQ(job.error().list.back().message, "and 951 more");
}

TEST(TrainingJobJson, WhatIsNoObjectIsOneMistake) {
  for (const std::string text : {"", "[]", "5", "null", "{", "{\"model\": \"a\", \"model\": \"b\"}"}) {
    const auto job = ParseTrainingJob(text);
    ASSERT_FALSE(job) << text;
    EXPECT_THAT(job.error().list, ElementsAre(Field(&JsonMistake::pointer, "")));
    EXPECT_THAT(job.error().ToError().message, HasSubstr("the job is ")) << text;
  }
  EXPECT_FALSE(ParseTrainingJob(std::string(2 << 20, ' ')));
}

}  // namespace
}  // namespace tandem
