#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "api/base/clock.h"
#include "server/jobs/job_store.h"
#include "tests/fakes/jumping_clock.h"

namespace tandem::jobs {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-jobs-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A store in a folder of its own, on a clock that stands still.
class StoreTest : public ::testing::Test {
 protected:
  explicit StoreTest(StoreLimits limits = {}) : limits_(limits) { Reopen(); }

  void Reopen() {
    store_.reset();
    auto opened = JobStore::Open(state(), clock_, limits_);
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = std::move(*opened);
  }
  JobId Add(const std::string& name = "job") {
    return store_->Submit({.name = name, .spec = "{}", .model = "m"}).value().job.id;
  }
  JobId AddRunning() {
    const JobId id = Add();
    EXPECT_TRUE(store_->Transition(id, JobAction::kAdmit));
    EXPECT_TRUE(store_->Transition(id, JobAction::kStart));
    return id;
  }
  [[nodiscard]] std::filesystem::path state() const { return folder_.path() / "state"; }
  [[nodiscard]] std::filesystem::path file() const { return state() / "jobs.db"; }

  TestFolder folder_;
  JumpingClock clock_;
  const StoreLimits limits_;
  std::unique_ptr<JobStore> store_;
};

}  // namespace tandem::jobs
