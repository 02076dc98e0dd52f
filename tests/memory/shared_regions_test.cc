#include "memory/shared_regions.h"

#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem {
namespace {

// A shared-memory object that goes away with the test.
class ShmObject {
 public:
  explicit ShmObject(std::size_t size) : key_(Format("/tandem-test-{}", ::getpid())) {
    fd_ = ::shm_open(key_.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    Resize(size);
  }
  ~ShmObject() {
    ::close(fd_);
    ::shm_unlink(key_.c_str());
  }
  void Resize(std::size_t size) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void Put(std::string_view text, off_t at) const {
    ASSERT_EQ(::pwrite(fd_, text.data(), text.size(), at), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string Get(std::size_t size, off_t at) const {
    std::string text(size, '\0');
    EXPECT_EQ(::pread(fd_, text.data(), size, at), static_cast<ssize_t>(size));
    return text;
  }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::string key_;
  int fd_ = -1;
};

TEST(SharedRegions, ReadsAndWritesWithinTheRegion) {
  const ShmObject object(64);
  object.Put("hello", 16);
  SharedRegions regions;
  ASSERT_TRUE(regions.Register("r", object.key(), 8, 32));
  const auto region = regions.Find("r");
  ASSERT_TRUE(region);
  const auto data = (*region)->Read(8, 5);
  ASSERT_TRUE(data);
  EXPECT_EQ(std::memcmp(data->data(), "hello", 5), 0);
  ASSERT_TRUE((*region)->Write(0, std::as_bytes(std::span("abc", 3))));
  EXPECT_EQ(object.Get(3, 8), "abc");
}

TEST(SharedRegions, RefusesWhatDoesNotFit) {
  const ShmObject object(64);
  SharedRegions regions;
  EXPECT_FALSE(regions.Register("r", object.key(), 0, 65));
  EXPECT_FALSE(regions.Register("r", object.key(), 65, 1));
  EXPECT_FALSE(regions.Register("r", object.key(), 1, ~std::uint64_t{0}));
  EXPECT_FALSE(regions.Register("r", object.key(), 0, 0));
  ASSERT_TRUE(regions.Register("r", object.key(), 0, 64));
  const auto region = *regions.Find("r");
  EXPECT_FALSE(region->Read(60, 5));
  EXPECT_FALSE(region->Read(~std::uint64_t{0}, 2));
  EXPECT_FALSE(region->Write(64, std::as_bytes(std::span("a", 1))));
}

TEST(SharedRegions, SurvivesAClientThatTruncatesItsObject) {
  const ShmObject object(4096);
  SharedRegions regions;
  ASSERT_TRUE(regions.Register("r", object.key(), 0, 4096));
  object.Resize(0);
  const auto region = *regions.Find("r");
  const auto data = region->Read(0, 4096);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(region->Write(0, std::as_bytes(std::span("a", 1))));
}

TEST(SharedRegions, RefusesKeysThatAreNotPlainNames) {
  SharedRegions regions;
  for (const char* key : {"", "/", "..", "/../etc/passwd", "/a/b", "/absent-object-of-tandem", "/a\nb"}) {
    const auto done = regions.Register("r", key, 0, 1);
    ASSERT_FALSE(done) << key;
    EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument) << key;
  }
  EXPECT_FALSE(regions.Register("", "/k", 0, 1));
  EXPECT_FALSE(regions.Register(std::string(256, 'x'), "/k", 0, 1));
}

TEST(SharedRegions, NamesAreUniqueUntilUnregistered) {
  const ShmObject object(64);
  SharedRegions regions;
  ASSERT_TRUE(regions.Register("r", object.key(), 0, 64));
  EXPECT_FALSE(regions.Register("r", object.key(), 0, 64));
  regions.Unregister("r");
  regions.Unregister("r");
  EXPECT_FALSE(regions.Find("r"));
  EXPECT_TRUE(regions.Register("r", object.key(), 0, 64));
  regions.UnregisterAll();
  EXPECT_TRUE(regions.All().empty());
}

TEST(SharedRegions, HoldsNoMoreThanItMay) {
  const ShmObject object(64);
  SharedRegions regions(2);
  ASSERT_TRUE(regions.Register("a", object.key(), 0, 64));
  ASSERT_TRUE(regions.Register("b", object.key(), 0, 64));
  const auto full = regions.Register("c", object.key(), 0, 64);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  regions.Unregister("a");
  EXPECT_TRUE(regions.Register("c", object.key(), 0, 64));
}

TEST(SharedRegions, WithoutADescriptorItIsNotTheClientsMistake) {
  const ShmObject object(64);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  SharedRegions regions;
  const auto done = regions.Register("r", object.key(), 0, 64);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tandem
