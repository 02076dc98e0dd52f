#include <format>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtimes/training/data/csv_table.h"
#include "runtimes/training/data/example_source.h"
#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvSourceTest : public ::testing::Test {
 protected:
  CsvSourceTest() {
    spec_ = {.kind = DataKind::kCsv, .path = "d.csv"};
    needs_.inputs = {{.name = "input", .type = DataType::kFp32, .shape = {2}}};
  }

  Result<std::unique_ptr<ExampleSource>> Open(std::string_view text) const {
    folder_.Write("d.csv", text);
    return OpenData(spec_, needs_, folder_.path(), 0);
  }
  Result<Batch> ReadAll(std::string_view text) const {
    TANDEM_ASSIGN(const auto source, Open(text));
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < source->size(); ++i) rows.push_back(i);
    Batch batch;
    TANDEM_TRY(source->Read(rows, batch));
    return batch;
  }
  std::string Why(std::string_view text) const {
    const auto batch = ReadAll(text);
    return batch ? "it was read" : batch.error().message;
  }

  const DataFolder folder_;
  DataSpec spec_;
  DataNeeds needs_;
};

TEST_F(CsvSourceTest, ReadsNumbersAndClassNumbers) {
  const auto batch = ReadAll("a,b,y\n1,2.5,0\n-3, 4e2 ,1\r\n\n+5,.5,2");
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_THAT(Values<float>(batch->inputs[0]), ElementsAre(1, 2.5F, -3, 400, 5, 0.5F));
  EXPECT_THAT(batch->inputs[0].shape, ElementsAre(3, 2));
  EXPECT_THAT(Values<std::int64_t>(batch->target), ElementsAre(0, 1, 2));
  EXPECT_EQ((*Open("a,b,y\n1,2,0\n1,2,3\n"))->classes(), 4);
}

TEST_F(CsvSourceTest, NumbersTextClassesInSortedOrder) {
  const auto source = Open("y,a,b\ndog,1,2\ncat,3,4\n\"bird, big\",5,6\ndog,7,8\n");
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT((*source)->class_names(), ElementsAre("bird, big", "cat", "dog"));
  EXPECT_EQ((*source)->classes(), 3);
  Batch batch;
  const std::vector<std::int64_t> rows{0, 2, 1};
  ASSERT_TRUE((*source)->Read(rows, batch));
  EXPECT_THAT(Values<std::int64_t>(batch.target), ElementsAre(2, 0, 1));
}

TEST_F(CsvSourceTest, TakesTheColumnsAskedForInTheirOrder) {
  spec_.columns = {"c", "a"};
  spec_.target = "label";
  const auto batch = ReadAll("a,label,b,c\n1,0,x,3\n");
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_THAT(Values<float>(batch->inputs[0]), ElementsAre(3, 1));
}

TEST_F(CsvSourceTest, ReadsQuotedFieldsAsTheStandardSays) {
  spec_.columns = {"a \"1\"", "b\nb"};
  const auto source =
      Open("\xef\xbb\xbf\"a \"\"1\"\"\",\"b\nb\",y\r\n\"1\",\"2\",\"say \"\"hi\"\"\nthere\"\r\n3,4,other\r\n");
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 2);
  EXPECT_THAT((*source)->class_names(), ElementsAre("other", "say \"hi\"\nthere"));
}

TEST_F(CsvSourceTest, ReadsFloatTargetsAndWholeNumbers) {
  needs_.inputs[0] = {.name = "ids", .type = DataType::kInt32, .shape = {-1, 1}};
  needs_.classes = false;
  needs_.target_shape = {1};
  const auto batch = ReadAll("a,b,y\n7,-2147483648,0.25\n");
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_THAT(batch->inputs[0].shape, ElementsAre(1, 2, 1));
  EXPECT_THAT(Values<std::int32_t>(batch->inputs[0]), ElementsAre(7, -2147483648));
  EXPECT_THAT(batch->target.shape, ElementsAre(1, 1));
  EXPECT_THAT(Values<float>(batch->target), ElementsAre(0.25F));
  EXPECT_THAT(Why("a,b,y\n1,2,0\n1,1.5,0\n"), AllOf(HasSubstr("line 3"), HasSubstr("'b'"), HasSubstr("whole number")));
  EXPECT_THAT(Why("a,b,y\n1,2147483648,0\n"), AllOf(HasSubstr("line 2"), HasSubstr("INT32")));
}

TEST_F(CsvSourceTest, SaysFileLineAndColumnOfWhatIsWrong) {
  EXPECT_THAT(Why("a,b,y\n1,2,0\n1,two,0\n"),
              AllOf(HasSubstr("d.csv"), HasSubstr("line 3"), HasSubstr("column 'b'"), HasSubstr("'two'")));
  EXPECT_THAT(Why("a,b,y\n1,,0\n"), AllOf(HasSubstr("line 2"), HasSubstr("'b'"), HasSubstr("empty")));
  EXPECT_THAT(Why("a,b,y\n1,nan,0\n"), AllOf(HasSubstr("line 2"), HasSubstr("'nan'")));
  EXPECT_THAT(Why("a,b,y\n1,inf,0\n"), HasSubstr("'inf'"));
  EXPECT_THAT(Why("a,b,y\n1,1e60,0\n"), AllOf(HasSubstr("'1e60'"), HasSubstr("FP32")));
  EXPECT_THAT(Why("a,b,y\n1,0x10,0\n"), HasSubstr("'0x10'"));
  EXPECT_THAT(Why("a,b,y\n1,2,0\n\n\n1,2\n"), AllOf(HasSubstr("line 5"), HasSubstr("2 fields"), HasSubstr("3")));
  EXPECT_THAT(Why("a,b,y\n1,2,3,4\n"), AllOf(HasSubstr("line 2"), HasSubstr("4 fields")));
  // Lines within quotes are lines.
  EXPECT_THAT(Why("a,b,y\n1,2,\"x\ny\"\n1,?,z\n"), AllOf(HasSubstr("line 4"), HasSubstr("'?'")));
}

TEST_F(CsvSourceTest, ChecksLabels) {
  needs_.class_count = 3;
  EXPECT_THAT(Why("a,b,y\n1,2,0\n1,2,3\n"), AllOf(HasSubstr("line 3"), HasSubstr("column 'y'"), HasSubstr("label 3")));
  EXPECT_THAT(Why("a,b,y\n1,2,-1\n"), HasSubstr("label -1"));
  EXPECT_THAT(Why("a,b,y\n1,2,1\n1,2,one\n"), AllOf(HasSubstr("line 3"), HasSubstr("'one'")));
  EXPECT_THAT(Why("a,b,y\n1,2,1.5\n"), AllOf(HasSubstr("line 2"), HasSubstr("'1.5'")));
  EXPECT_THAT(Why("a,b,y\n1,2,a\n1,2,b\n1,2,c\n1,2,d\n"), AllOf(HasSubstr("line 5"), HasSubstr("'d'")));
  EXPECT_THAT(Why("a,b,y\n1,2,a\n1,2,\n"), AllOf(HasSubstr("line 3"), HasSubstr("empty")));
  const auto batch = ReadAll("a,b,y\n1,2,2.0\n");
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_THAT(Values<std::int64_t>(batch->target), ElementsAre(2));
}

TEST_F(CsvSourceTest, ChecksColumns) {
  EXPECT_THAT(Why("a,b,z\n1,2,0\n"), AllOf(HasSubstr("no column 'y'"), HasSubstr("'a', 'b', 'z'")));
  EXPECT_THAT(Why("a,b,c,y\n1,2,3,0\n"), AllOf(HasSubstr("3 columns"), HasSubstr("[2]")));
  EXPECT_THAT(Why("y\n1\n"), HasSubstr("no column but the target"));
  EXPECT_THAT(Why("a,b,y,y\n1,2,3,0\n"), HasSubstr("more than one column 'y'"));
  spec_.columns = {"a", "y"};
  EXPECT_THAT(Why("a,b,y\n1,2,0\n"), HasSubstr("is the target"));
  needs_.inputs.push_back(needs_.inputs[0]);
  EXPECT_THAT(Why("a,b,y\n1,2,0\n"), HasSubstr("one input"));
}

TEST_F(CsvSourceTest, RefusesBrokenFiles) {
  EXPECT_THAT(Why(""), HasSubstr("names of the columns"));
  EXPECT_THAT(Why("\n\n"), HasSubstr("names of the columns"));
  EXPECT_THAT(Why("a,b,y\n"), HasSubstr("no examples"));
  EXPECT_THAT(Why("a,b,y\n1,2,\"open\n3,4,0\n"), AllOf(HasSubstr("line 2"), HasSubstr("not closed")));
  EXPECT_THAT(Why("a,b,y\n1,\"2\"x,0\n"), AllOf(HasSubstr("line 2"), HasSubstr("after the end of a quote")));
  EXPECT_THAT(Why("a,b,y\n1,2\"\",0\n"), AllOf(HasSubstr("line 2"), HasSubstr("quote within")));
  EXPECT_THAT(Why(std::string("a,b,y\n1,2\0,0\n", 13)), HasSubstr("line 2"));
}

TEST_F(CsvSourceTest, BoundsColumnsAndRows) {
  std::string wide = "y";
  for (int i = 0; i < 100'000; ++i) wide += ",c";
  EXPECT_THAT(Why(wide + "\n" + wide + "\n"), HasSubstr("more than 65536 columns"));
  EXPECT_THAT(Why("a,b,y\n1,2," + std::string(100'000, ',') + "\n"), HasSubstr("line 2"));
  const std::string endless(CsvTable::kMaxRowBytes + 10, '1');
  EXPECT_THAT(Why(endless), AllOf(HasSubstr("line 1"), HasSubstr("longer")));
  EXPECT_THAT(Why("a,b,y\n1,2,0\n" + endless + "\n"), AllOf(HasSubstr("line 3"), HasSubstr("longer")));
  // A quote that is never closed does not take in the rest of a large file.
  std::string rows = "a,b,y\n1,2,\"0\n";
  while (rows.size() < CsvTable::kMaxRowBytes * 2) rows += "1,2,0\n";
  EXPECT_THAT(Why(rows), AllOf(HasSubstr("line 2"), HasSubstr("longer")));
}

TEST_F(CsvSourceTest, EndsWellWhateverByteIsChanged) {
  const std::string whole = "a,b,y\n1,2,\"x \"\"1\"\"\"\r\n3,4,z\n";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'"', ',', '\n', '\r', '\0', '\xff', '9'}) {
      std::string changed = whole;
      changed[i] = c;
      (void)ReadAll(changed);
    }
    (void)ReadAll(whole.substr(0, i));
  }
  EXPECT_TRUE(ReadAll(whole));
}

}  // namespace
}  // namespace tandem::training
