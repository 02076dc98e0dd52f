#include "server/infer/prepare.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/base/format.h"
#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::MakeServable;
using testing::MakeTensor;

class PrepareTest : public ::testing::Test {
 protected:
  static InferRequest Request(std::int64_t rows = 1) {
    InferRequest request;
    request.model = "m";
    request.inputs = {{.tensor = MakeTensor("x", DataType::kFp32, {rows, 2},
                                            std::vector<float>(static_cast<std::size_t>(rows * 2), 1)),
                       .shared = {}}};
    request.arrival = MonotonicTime(1h);
    request.cancel = std::make_shared<CancelToken>();
    return request;
  }
  Result<WorkItem> Prepare(const InferRequest& request, std::uint64_t max_shared_bytes = kMaxSharedBytes) {
    output_regions_.clear();
    return PrepareWork(request, servable_, regions_, max_shared_bytes, output_regions_);
  }
  Error Refusal(const InferRequest& request) {
    const auto item = Prepare(request);
    EXPECT_FALSE(item);
    if (item) return {};
    EXPECT_EQ(item.error().code, ErrorCode::kInvalidArgument);
    return item.error();
  }

  SharedRegions regions_;
  OutputRegions output_regions_;
  std::shared_ptr<Servable> servable_ = MakeServable("m", {.max_batch_size = 4, .dynamic = true});
};

TEST_F(PrepareTest, AcceptsWhatFitsAndAsksForAllOutputs) {
  const auto item = Prepare(Request(3));
  ASSERT_TRUE(item);
  EXPECT_EQ(item->batch, 3);
  EXPECT_EQ(item->outputs, std::vector<std::string>{"y"});
}

TEST_F(PrepareTest, NamesBothSidesOfEveryMismatch) {
  InferRequest request = Request();
  request.inputs[0].tensor.type = DataType::kInt32;
  EXPECT_THAT(Refusal(request).message, HasSubstr("INT32; the model takes FP32"));
  request = Request();
  request.inputs[0].tensor.shape = {1, 3};
  EXPECT_THAT(Refusal(request).message, HasSubstr("[1,3]; the model takes [-1,2]"));
  request = Request();
  request.inputs[0].tensor.name = "z";
  EXPECT_THAT(Refusal(request).message, HasSubstr("no input 'z'; its inputs are: x"));
  request = Request();
  request.inputs.push_back(request.inputs[0]);
  EXPECT_THAT(Refusal(request).message, HasSubstr("input 'x' is given twice"));
  request = Request();
  request.inputs.clear();
  EXPECT_THAT(Refusal(request).message, HasSubstr("needs input 'x'"));
  request = Request();
  request.outputs = {{.name = "nope"}};
  EXPECT_THAT(Refusal(request).message, HasSubstr("no output 'nope'; its outputs are: y"));
  request = Request();
  request.inputs[0].shared = SharedRange{.region = "absent", .offset = 0, .byte_size = 8};
  EXPECT_THAT(Refusal(request).message, HasSubstr("'absent' is not registered"));
}

TEST_F(PrepareTest, BoundsTheBatch) {
  EXPECT_THAT(Refusal(Request(0)).message, HasSubstr("batch size 0; the model takes 1 to 4"));
  EXPECT_THAT(Refusal(Request(5)).message, HasSubstr("batch size 5"));
}

TEST_F(PrepareTest, ChecksTheBytesAgainstTheShape) {
  InferRequest request = Request(2);
  request.inputs[0].tensor.data = request.inputs[0].tensor.data.Part(0, 12);
  EXPECT_THAT(Refusal(request).message, HasSubstr("needs 16 bytes but 12 were given"));
}

TEST_F(PrepareTest, RequestsWithoutAPriorityWaitBehindThoseWithOne) {
  InferRequest named = Request();
  named.priority = 1000;
  EXPECT_LT(Prepare(named)->priority, Prepare(Request())->priority);
}

TEST_F(PrepareTest, PrioritiesBeyondTheModelsLevelsFallToItsDefault) {
  servable_ = MakeServable("m", {.max_batch_size = 4, .priority_levels = 3, .default_priority = 2});
  InferRequest request = Request();
  request.priority = 4;
  EXPECT_EQ(Prepare(request)->priority, 2u);
  request.priority = 3;
  EXPECT_EQ(Prepare(request)->priority, 3u);
}

TEST_F(PrepareTest, TheDeadlineIsTheEarliestThatTheRequestSays) {
  InferRequest request = Request();
  request.timeout = 50ms;
  request.slo = 20ms;
  EXPECT_EQ(ResolveDeadline(request, *servable_, 1ms), request.arrival + 20ms);
  request.deadline = request.arrival + 10ms;
  EXPECT_EQ(ResolveDeadline(request, *servable_, 1ms), request.arrival + 10ms);
}

TEST_F(PrepareTest, ElseItIsTheModelsElseTheServersElseNone) {
  const InferRequest request = Request();
  EXPECT_EQ(ResolveDeadline(request, *servable_, std::nullopt), std::nullopt);
  EXPECT_EQ(ResolveDeadline(request, *servable_, 5ms), request.arrival + 5ms);
  const auto signature = testing::PairSignature();
  const Servable strict("m", 1, signature, {.max_batch_size = 4}, 3ms,
                        std::make_unique<testing::FakeSession>(signature));
  EXPECT_EQ(ResolveDeadline(request, strict, 5ms), request.arrival + 3ms);
}

TEST_F(PrepareTest, RefusesDimensionsOfZeroUnlessTheModelBearsThem) {
  const auto with = [&](const Shape& declared, const Shape& given, bool may_be_empty = false) {
    const ModelSignature signature{.inputs = {{.name = "x", .type = DataType::kFp32, .shape = declared}},
                                   .outputs = {{.name = "y", .type = DataType::kFp32, .shape = declared}},
                                   .may_be_empty = may_be_empty};
    servable_ = std::make_shared<Servable>("m", 1, signature, BatchSettings{}, std::nullopt,
                                           std::make_unique<testing::FakeSession>(signature));
    InferRequest request = Request();
    request.inputs[0].tensor = MakeTensor("x", DataType::kFp32, given, std::vector<float>());
    return request;
  };
  EXPECT_THAT(Refusal(with({-1, 2, -1}, {3, 2, 0})).message, HasSubstr("dimension 2 is 0"));
  EXPECT_THAT(Refusal(with({-1, 2}, {0, 2})).message, HasSubstr("[0,2]"));
  EXPECT_TRUE(Prepare(with({-1, 0}, {3, 0})));
  EXPECT_TRUE(Prepare(with({-1, 2}, {0, 2}, true)));
}

// A region "r" of a shared-memory object that is far larger on paper than in memory.
class SharedInputTest : public PrepareTest {
 protected:
  static constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;

  SharedInputTest() {
    const int fd = ::shm_open(key_.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(kHuge)), 0);
    ::close(fd);
    EXPECT_TRUE(regions_.Register("r", key_, 0, kHuge));
  }
  ~SharedInputTest() override { ::shm_unlink(key_.c_str()); }

  const std::string key_ = Format("/tandem-prepare-test-{}", ::getpid());
};

TEST_F(SharedInputTest, TheSizeMustFitTheShapeBeforeAnythingIsRead) {
  InferRequest request = Request();
  request.inputs[0].shared = SharedRange{.region = "r", .offset = 0, .byte_size = 8};
  EXPECT_TRUE(Prepare(request));
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{9}, kHuge}) {
    request.inputs[0].shared->byte_size = size;
    EXPECT_THAT(Refusal(request).message, HasSubstr("needs 8 bytes")) << size;
  }
}

TEST_F(SharedInputTest, AnOutputKeepsItsRegionWhateverBecomesOfTheName) {
  InferRequest request = Request();
  request.outputs = {{.name = "y", .shared = SharedRange{.region = "r", .offset = 0, .byte_size = 8}}};
  ASSERT_TRUE(Prepare(request));
  ASSERT_EQ(output_regions_.size(), 1u);
  regions_.UnregisterAll();
  const float values[] = {1, 2};
  EXPECT_TRUE(output_regions_[0]->Write(0, std::as_bytes(std::span(values))));
}

TEST_F(SharedInputTest, StringsAreBoundedByWhatARequestMayHold) {
  const ModelSignature signature{.inputs = {{.name = "x", .type = DataType::kBytes, .shape = {-1, 2}}},
                                 .outputs = {{.name = "y", .type = DataType::kBytes, .shape = {-1, 2}}}};
  servable_ = std::make_shared<Servable>("m", 1, signature, BatchSettings{.max_batch_size = 4}, std::nullopt,
                                         std::make_unique<testing::FakeSession>(signature));
  InferRequest request = Request();
  request.inputs[0].tensor.type = DataType::kBytes;
  request.inputs[0].shared = SharedRange{.region = "r", .offset = 0, .byte_size = 8};
  EXPECT_TRUE(Prepare(request, 8)) << "two empty strings";
  const auto refused = Prepare(request, 7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  request.inputs[0].shared->byte_size = kHuge;
  EXPECT_EQ(Prepare(request).error().code, ErrorCode::kTooLarge);
}

TEST_F(SharedInputTest, AnOutputsRangeMustLieInItsRegion) {
  InferRequest request = Request();
  request.outputs = {{.name = "y", .shared = SharedRange{.region = "r", .offset = kHuge - 8, .byte_size = 8}}};
  EXPECT_TRUE(Prepare(request));
  request.outputs[0].shared->offset = kHuge - 7;
  EXPECT_THAT(Refusal(request).message, HasSubstr("do not fit"));
  request.outputs[0].shared->offset = ~std::uint64_t{0};
  EXPECT_THAT(Refusal(request).message, HasSubstr("do not fit"));
}

}  // namespace
}  // namespace tandem
