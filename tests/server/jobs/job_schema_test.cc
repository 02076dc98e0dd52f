#include "server/jobs/job_schema.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

using testing::HasSubstr;

class JobSchemaTest : public ::testing::Test {
 protected:
  std::unique_ptr<Database> Open() { return Database::Open(folder_.path() / "some.db").value(); }

  const std::vector<std::string> one_ = {"CREATE TABLE a (x INTEGER) STRICT"};
  const std::vector<std::string> two_ = {one_[0], "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7"};
  TestFolder folder_;
};

TEST_F(JobSchemaTest, AnOldDatabaseIsBroughtUpToDateAndKeepsItsRows) {
  {
    const auto database = Open();
    ASSERT_TRUE(Migrate(*database, one_));
    ASSERT_TRUE(database->Execute("INSERT INTO a (x) VALUES (?)", 5));
  }
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database, two_));
  EXPECT_EQ(database->WholeOf("SELECT x + y FROM a"), 12);
  EXPECT_EQ(database->WholeOf("PRAGMA user_version"), 2);
  EXPECT_TRUE(Migrate(*database, two_)) << "a second time nothing is left to do";
}

TEST_F(JobSchemaTest, AMigrationThatFailsLeavesEverythingAsItWas) {
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database, one_));
  const std::vector<std::string> broken = {one_[0], two_[1], "CREATE TABLE b (x INTEGER) STRICT; CREATE nonsense"};
  EXPECT_FALSE(Migrate(*database, broken));
  EXPECT_EQ(database->WholeOf("PRAGMA user_version"), 1);
  EXPECT_EQ(database->WholeOf("SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_TRUE(Migrate(*database, two_));
}

TEST_F(JobSchemaTest, ANewerDatabaseIsRefused) {
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database, two_));
  const Status older = Migrate(*database, one_);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(older.error().message, HasSubstr("some.db' has version 2, and this program knows none beyond 1"));
}

TEST_F(JobSchemaTest, ADatabaseOfAnotherProgramIsLeftAlone) {
  const auto database = Open();
  ASSERT_TRUE(database->RunScript("CREATE TABLE theirs (x)"));
  const Status migrated = Migrate(*database, one_);
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().message, HasSubstr("of another program"));
  EXPECT_EQ(database->WholeOf("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(JobSchemaTest, TheRealMigrationsMakeADatabase) {
  const auto database = Open();
  const Status migrated = Migrate(*database, JobMigrations());
  EXPECT_TRUE(migrated) << migrated.error().message;
}

TEST_F(JobSchemaTest, JobsFromBeforeThreadsWereKeptHaveNone) {
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database, JobMigrations().first(3)));
  ASSERT_TRUE(database->RunScript(
      "INSERT INTO jobs (state, name, owner, spec, spec_hash, model, model_version, priority, created_at) "
      "VALUES ('queued', 'n', 'o', '{}', '', 'm', '', 0, 0)"));
  ASSERT_TRUE(Migrate(*database, JobMigrations()));
  EXPECT_EQ(database->WholeOf("SELECT count(*) FROM jobs WHERE fixed_threads IS NULL"), 1);
}

TEST_F(JobSchemaTest, JobsOfTheFirstVersionGetAnOwner) {
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database, JobMigrations().first(1)));
  ASSERT_TRUE(database->RunScript(
      "INSERT INTO jobs (state, name, owner, spec, spec_hash, model, model_version, priority, created_at) "
      "VALUES ('queued', 'n', '', '{}', '', 'm', '', 0, 0)"));
  ASSERT_TRUE(Migrate(*database, JobMigrations()));
  EXPECT_EQ(database->WholeOf("SELECT count(*) FROM jobs WHERE owner = 'default' AND NOT publish_due"), 1);
}

}  // namespace
}  // namespace tandem::jobs
