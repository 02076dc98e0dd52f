#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/repository/model_repository.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

constexpr int kReaders = 4;
constexpr int kRounds = 150;

class RepositoryStress : public testing::Test {
 protected:
  void Open(ControlMode mode) {
    models_ = std::make_unique<ModelRepository>(
        RepositoryOptions{.roots = {repo_.path()}, .mode = mode, .load_models = {"*"}}, factory_);
    ASSERT_TRUE(models_->Start());
  }

  // Runs `read` on several threads until `change` has ended.
  template <typename Read, typename Change>
  void Beside(Read read, Change change) {
    std::atomic<bool> stop{false};
    std::vector<std::jthread> readers;
    for (int i = 0; i < kReaders; ++i) {
      readers.emplace_back([&] {
        while (!stop) read();
      });
    }
    change();
    stop = true;
  }

  TestFolder repo_;
  FakeFactory factory_;
  std::unique_ptr<ModelRepository> models_;
};

TEST_F(RepositoryStress, NoRequestIsLostWhileAModelIsReloadedGoodAndBad) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Open(ControlMode::kExplicit);
  std::atomic<int> lost{0};
  std::atomic<int> answered{0};
  Beside(
      [&] {
        const auto found = models_->Find("m", "");
        const auto answer = found ? Ask(**found) : std::unexpected(found.error());
        answer && *answer >= 1 ? ++answered : ++lost;
      },
      [&] {
        for (int i = 1; i <= kRounds; ++i) {
          repo_.Write("m/1/model.onnx", i % 5 == 0 ? "corrupt" : AddModel(i));
          EXPECT_EQ(models_->Load("m", {}).has_value(), i % 5 != 0);
        }
        while (answered < kRounds) std::this_thread::yield();
      });
  EXPECT_EQ(lost, 0);
  models_.reset();
  EXPECT_EQ(factory_.alive, 0);
}

TEST_F(RepositoryStress, UnloadingUnderLoadAnswersOrRefusesButNeverBreaks) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("steady/1/model.onnx", AddModel(2));
  Open(ControlMode::kExplicit);
  std::atomic<int> wrong{0};
  Beside(
      [&] {
        if (const auto found = models_->Find("m", "")) {
          if (Ask(**found) != 1.0F) ++wrong;
        } else if (found.error().code != ErrorCode::kUnavailable && found.error().code != ErrorCode::kNotFound) {
          ++wrong;
        }
        const auto steady = models_->Find("steady", "1");
        if (!steady || Ask(**steady) != 2.0F) ++wrong;
        if (models_->Index(false).size() < 2 || models_->Snapshot().empty()) ++wrong;
      },
      [&] {
        for (int i = 0; i < kRounds; ++i) {
          EXPECT_TRUE(models_->Unload("m"));
          EXPECT_TRUE(models_->Load("m", {}));
        }
      });
  EXPECT_EQ(wrong, 0);
}

TEST_F(RepositoryStress, OperationsOnOneModelFromManyThreadsAreInTurn) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  factory_.on_create = [&](const SessionRequest&) {
    if (++inside > 1) ++overlaps;
    std::this_thread::yield();
    --inside;
  };
  Open(ControlMode::kExplicit);
  Beside([&] { static_cast<void>(models_->Load("m", {.config_json = "{}"})); },
         [&] {
           for (int i = 0; i < kRounds; ++i) {
             EXPECT_TRUE(models_->Unload("m"));
             EXPECT_TRUE(models_->Rescan());
           }
         });
  EXPECT_EQ(overlaps, 0);
  EXPECT_TRUE(models_->Load("m", {}));
  EXPECT_TRUE(models_->IsReady("m", ""));
}

TEST_F(RepositoryStress, AsynchronousLoadsAreAllAnswered) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Open(ControlMode::kExplicit);
  std::atomic<int> answers{0};
  Beside([&] { static_cast<void>(models_->Find("m", "")); },
         [&] {
           for (int i = 0; i < kRounds; ++i) {
             models_->UnloadAsync("m", [&](const Status&) { ++answers; });
             models_->LoadAsync("m", {}, [&](const Status&) { ++answers; });
           }
           std::promise<void> done;
           models_->RescanAsync([&](const Status&) { done.set_value(); });
           done.get_future().wait();
         });
  EXPECT_EQ(answers, 2 * kRounds);
}

}  // namespace
}  // namespace tandem::repository
