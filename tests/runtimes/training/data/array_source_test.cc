#include <filesystem>
#include <format>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtimes/training/data/example_source.h"
#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kX = Npy("<f4", "(3, 2)", BytesOf<float>({1, 2, 3, 4, 5, 6}));
const std::string kY = Npy("<i8", "(3,)", BytesOf<std::int64_t>({0, 2, 1}));

class ArraySourceTest : public ::testing::Test {
 protected:
  ArraySourceTest() {
    spec_.path = "d.npz";
    needs_.inputs = {{.name = "input", .type = DataType::kFp32, .shape = {2}}};
  }

  Result<std::unique_ptr<ExampleSource>> Open(const DataLimits& limits = {}) const {
    return OpenData(spec_, needs_, folder_.path(), 0, limits);
  }
  // Writes the two arrays as a .npz file and opens it.
  Result<std::unique_ptr<ExampleSource>> OpenThese(const std::string& x, const std::string& y,
                                                   bool packed = false) const {
    folder_.Write("d.npz", Npz({{"x.npy", x}, {"y.npy", y}}, packed));
    return Open();
  }
  std::string Why(const std::string& x, const std::string& y) const {
    const auto source = OpenThese(x, y);
    return source ? "it was opened" : source.error().message;
  }
  // Why the first row cannot be read.
  std::string WhyNotRead(const std::string& x) const {
    const auto source = OpenThese(x, kY);
    if (!source) return "not even opened: " + source.error().message;
    Batch batch;
    const std::vector<std::int64_t> rows{0, 1, 2};
    const auto status = (*source)->Read(rows, batch);
    return status ? "it was read" : status.error().message;
  }

  const DataFolder folder_;
  DataSpec spec_;
  DataNeeds needs_;
};

void ExpectTheRows(const Result<std::unique_ptr<ExampleSource>>& source) {
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 3);
  EXPECT_EQ((*source)->classes(), 3);
  Batch batch;
  const std::vector<std::int64_t> rows{2, 0};
  const auto status = (*source)->Read(rows, batch);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(batch.size, 2);
  EXPECT_EQ(batch.inputs[0].name, "input");
  EXPECT_THAT(batch.inputs[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(Values<float>(batch.inputs[0]), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(batch.target.shape, ElementsAre(2));
  EXPECT_THAT(Values<std::int64_t>(batch.target), ElementsAre(1, 0));
}

TEST_F(ArraySourceTest, ReadsRowsOfAnArchiveStoredOrPackedOrLarge) {
  ExpectTheRows(OpenThese(kX, kY));
  ExpectTheRows(OpenThese(kX, kY, true));
  folder_.Write("d.npz", Npz({{"x.npy", kX}, {"y.npy", kY}}, false, true));
  ExpectTheRows(Open());
  folder_.Write("d.npz", Npz({{"x.npy", kX}, {"y.npy", kY}}, true, true));
  ExpectTheRows(Open());
}

TEST_F(ArraySourceTest, ReadsRowsOfAFolder) {
  folder_.Write("set/x.npy", kX);
  folder_.Write("set/y.npy", kY);
  spec_.path = "set";
  ExpectTheRows(Open());
  spec_.path = (folder_.path() / "set").string();
  ExpectTheRows(Open());
}

TEST_F(ArraySourceTest, TakesOtherTypesThatLoseNothing) {
  ExpectTheRows(OpenThese(Npy("|u1", "(3, 2)", BytesOf<std::uint8_t>({1, 2, 3, 4, 5, 6})), kY));
  ExpectTheRows(OpenThese(Npy("<f8", "(3, 2)", BytesOf<double>({1, 2, 3, 4, 5, 6})), kY));
  ExpectTheRows(OpenThese(Npy("<i4", "(3, 2)", BytesOf<std::int32_t>({1, 2, 3, 4, 5, 6})), kY));
  ExpectTheRows(OpenThese(Npy("<f2", "(3, 2)", BytesOf<_Float16>({1, 2, 3, 4, 5, 6})), kY));
  ExpectTheRows(OpenThese(kX, Npy("|u1", "(3,)", BytesOf<std::uint8_t>({0, 2, 1}))));
  ExpectTheRows(OpenThese(kX, Npy("<i4", "(3, 1)", BytesOf<std::int32_t>({0, 2, 1}))));
}

TEST_F(ArraySourceTest, FeedsModelsWithManyInputsByName) {
  needs_.inputs = {{.name = "ids", .type = DataType::kInt64, .shape = {-1}},
                   {.name = "mask", .type = DataType::kBool, .shape = {2}}};
  needs_.classes = false;
  needs_.target_shape = {1};
  spec_.inputs = {{"ids", "tokens"}};
  folder_.Write("d.npz", Npz({{"tokens.npy", Npy("<i4", "(2, 3)", BytesOf<std::int32_t>({1, 2, 3, 4, 5, 6}))},
                              {"mask.npy", Npy("|b1", "(2, 2)", std::string("\1\0\0\1", 4))},
                              {"y.npy", Npy("<f8", "(2,)", BytesOf<double>({0.5, 1.5}))}}));
  const auto source = Open();
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->classes(), 0);
  Batch batch;
  const std::vector<std::int64_t> rows{1};
  ASSERT_TRUE((*source)->Read(rows, batch));
  EXPECT_THAT(Values<std::int64_t>(batch.inputs[0]), ElementsAre(4, 5, 6));
  EXPECT_THAT(batch.inputs[0].shape, ElementsAre(1, 3));
  EXPECT_THAT(Values<std::uint8_t>(batch.inputs[1]), ElementsAre(0, 1));
  EXPECT_EQ(batch.target.type, DataType::kFp32);
  EXPECT_THAT(batch.target.shape, ElementsAre(1, 1));
  EXPECT_THAT(Values<float>(batch.target), ElementsAre(1.5F));
}

TEST_F(ArraySourceTest, GivesTheModelsShapeWhereOnesAreMissing) {
  needs_.inputs[0].shape = {1, 2, 1};
  const auto source = OpenThese(kX, kY);
  ASSERT_TRUE(source) << source.error().message;
  Batch batch;
  const std::vector<std::int64_t> rows{1};
  ASSERT_TRUE((*source)->Read(rows, batch));
  EXPECT_THAT(batch.inputs[0].shape, ElementsAre(1, 1, 2, 1));
}

TEST_F(ArraySourceTest, SaysWhatDoesNotFitTheModel) {
  EXPECT_THAT(Why(Npy("<f4", "(3, 5)", std::string(60, '\0')), kY), AllOf(HasSubstr("d.npz:x"), HasSubstr("[5]")));
  EXPECT_THAT(Why(kX, Npy("<i8", "(2,)", std::string(16, '\0'))), AllOf(HasSubstr("d.npz:y"), HasSubstr("2 examples")));
  EXPECT_THAT(Why(kX, Npy("<f4", "(3,)", std::string(12, '\0'))), AllOf(HasSubstr("FP32"), HasSubstr("whole numbers")));
  EXPECT_THAT(Why(Npy("<f4", "()", std::string(4, '\0')), kY), HasSubstr("single number"));
  EXPECT_THAT(Why(Npy("<f4", "(0, 2)", ""), Npy("<i8", "(0,)", "")), HasSubstr("no examples"));
  needs_.inputs[0].type = DataType::kInt64;
  EXPECT_THAT(Why(kX, kY), AllOf(HasSubstr("FP32"), HasSubstr("INT64")));
  needs_.inputs[0].type = DataType::kBytes;
  EXPECT_THAT(Why(kX, kY), HasSubstr("BYTES"));
}

TEST_F(ArraySourceTest, NamesArraysThatAreNotThere) {
  spec_.target = "labels";
  EXPECT_THAT(Why(kX, kY), AllOf(HasSubstr("no array 'labels'"), HasSubstr("'x', 'y'")));
  spec_.inputs = {{"nothing", "x"}};
  EXPECT_THAT(Why(kX, kY), HasSubstr("input 'nothing'"));
}

TEST_F(ArraySourceTest, LabelsOutOfRangeSayFileArrayRowAndValue) {
  needs_.class_count = 2;
  EXPECT_THAT(Why(kX, kY), AllOf(HasSubstr("d.npz:y"), HasSubstr("row 1"), HasSubstr("label 2")));
  needs_.class_count = 0;
  EXPECT_THAT(Why(kX, Npy("<i8", "(3,)", BytesOf<std::int64_t>({0, 1, -1}))),
              AllOf(HasSubstr("d.npz:y"), HasSubstr("row 2"), HasSubstr("label -1")));
  EXPECT_THAT(Why(kX, Npy("<i8", "(3,)", BytesOf<std::int64_t>({0, 1LL << 60, 1}))), HasSubstr("row 1"));
  EXPECT_THAT(Why(kX, Npy("<u8", "(3,)", BytesOf<std::uint64_t>({0, 1, ~0ULL}))),
              AllOf(HasSubstr("row 2"), HasSubstr("18446744073709551615")));
}

TEST_F(ArraySourceTest, RefusesWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(WhyNotRead(Npy("<f4", "(3, 2)", BytesOf<float>({1, 2, 3, nan, 5, 6}))),
              AllOf(HasSubstr("d.npz:x"), HasSubstr("row 1"), HasSubstr("element 1"), HasSubstr("nan")));
  EXPECT_THAT(WhyNotRead(Npy("<f4", "(3, 2)", BytesOf<float>({1, 2, 3, 4, -infinity, 6}))),
              AllOf(HasSubstr("row 2"), HasSubstr("-inf")));
  EXPECT_THAT(WhyNotRead(Npy("<f8", "(3, 2)", BytesOf<double>({1e300, 2, 3, 4, 5, 6}))),
              AllOf(HasSubstr("row 0"), HasSubstr("1e+300"), HasSubstr("FP32")));
}

TEST_F(ArraySourceTest, RefusesTypesAndOrdersItDoesNotKnow) {
  EXPECT_THAT(Why(Npy("<c8", "(3, 2)", std::string(48, '\0')), kY), AllOf(HasSubstr("d.npz:x"), HasSubstr("<c8")));
  EXPECT_THAT(Why(Npy("|O", "(3, 2)", std::string(48, '\0')), kY), HasSubstr("dtype"));
  EXPECT_THAT(Why(Npy(">f4", "(3, 2)", std::string(24, '\0')), kY), HasSubstr(">f4"));
  EXPECT_THAT(Why(Npy("<f4", "(3, 2)", std::string(24, '\0'), "True"), kY), HasSubstr("Fortran"));
}

TEST_F(ArraySourceTest, RefusesAbsurdHeaders) {
  EXPECT_FALSE(OpenThese(Npy("<f4", "(4611686018427387904, 2)", "abcd"), kY));
  EXPECT_FALSE(OpenThese(Npy("<f4", "(99999999999999999999, 2)", "abcd"), kY));
  EXPECT_FALSE(OpenThese(Npy("<f4", "(-3, 2)", "abcd"), kY));
  EXPECT_FALSE(OpenThese(Npy("<f4", "(3000000000, 2)", "abcd"), kY));
  EXPECT_FALSE(OpenThese("", kY));
  EXPECT_FALSE(OpenThese(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), kY));
}

TEST_F(ArraySourceTest, EndsWellWhereverAnArchiveIsCutOrChanged) {
  Batch batch;
  const std::vector<std::int64_t> rows{0, 1, 2};
  for (const bool packed : {false, true}) {
    const std::string whole = Npz({{"x.npy", kX}, {"y.npy", kY}}, packed, true);
    for (std::size_t size = 0; size < whole.size(); size += 11) {
      folder_.Write("d.npz", whole.substr(0, size));
      EXPECT_FALSE(Open()) << size;
    }
    for (std::size_t i = 0; i < whole.size(); i += 2) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0xa5);
      folder_.Write("d.npz", changed);
      if (const auto source = Open()) (void)(*source)->Read(rows, batch);
    }
  }
}

TEST_F(ArraySourceTest, RefusesZipBombs) {
  // Sixteen megabytes of zeros in sixteen kilobytes.
  const std::string zeros = Npy("<f4", "(2097152, 2)", std::string(16 << 20, '\0'));
  folder_.Write("d.npz", Npz({{"x.npy", zeros}, {"y.npy", kY}}, true));
  EXPECT_LT(std::filesystem::file_size(folder_.path() / "d.npz"), 20'000u);
  const auto bomb = Open({.unpacked_bytes = 8 << 20});
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(bomb.error().message, HasSubstr("d.npz:x"));
  // One that claims to be small, and one that claims what its bytes could never hold.
  folder_.Write("d.npz", Npz({{"x.npy", zeros, 1000}, {"y.npy", kY}}, true));
  EXPECT_THAT(Open().error().message, HasSubstr("broken"));
  folder_.Write("d.npz", Npz({{"x.npy", kX, 3'000'000'000}, {"y.npy", kY}}, true));
  EXPECT_THAT(Open().error().message, HasSubstr("cannot unpack"));
}

TEST_F(ArraySourceTest, StoredArraysAreNotHeldInMemory) {
  // Larger than what may be unpacked, which is about packed ones alone.
  const std::string x = Npy("<f4", "(3, 2)", BytesOf<float>({1, 2, 3, 4, 5, 6}));
  folder_.Write("d.npz", Npz({{"x.npy", x}, {"y.npy", kY}}));
  ExpectTheRows(Open({.unpacked_bytes = 1}));
}

TEST_F(ArraySourceTest, RefusesBatchesBeyondTheLimit) {
  folder_.Write("d.npz", Npz({{"x.npy", kX}, {"y.npy", kY}}));
  const auto source = Open({.batch_bytes = 16});
  ASSERT_TRUE(source);
  Batch batch;
  const std::vector<std::int64_t> rows{0, 1, 2};
  EXPECT_EQ((*source)->Read(rows, batch).error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace tandem::training
