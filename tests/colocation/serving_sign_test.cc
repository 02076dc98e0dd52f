#include "colocation/serving_sign.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem {
namespace {

// A copy of the descriptor, as a trainer inherits it.
std::unique_ptr<ServingSign> AsTrainer(const ServingSign& sign) {
  return ServingSign::Attach(::dup(sign.fd())).value();
}

TEST(ServingSign, TrainersSeeWhatTheServerShows) {
  const auto server = ServingSign::Create().value();
  const auto first = AsTrainer(*server);
  EXPECT_EQ(first->shown(), 0);
  server->Show(3);
  EXPECT_EQ(first->shown(), 3);
  EXPECT_EQ(AsTrainer(*server)->shown(), 3) << "one that comes later";
}

TEST(ServingSign, ATrainerCanNeitherWriteNorShortenIt) {
  const auto server = ServingSign::Create().value();
  server->Show(2);
  EXPECT_EQ(::mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, server->fd(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::pwrite(server->fd(), "xxxx", 4, 0), -1);
  EXPECT_EQ(::ftruncate(server->fd(), 0), -1);
  void* const seen = ::mmap(nullptr, 64, PROT_READ, MAP_SHARED, server->fd(), 0);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_NE(::mprotect(seen, 64, PROT_READ | PROT_WRITE), 0) << "nor later";
  ::munmap(seen, 64);
  EXPECT_EQ(server->shown(), 2);
}

TEST(ServingSign, WhatIsNoSignIsRefused) {
  const int file = ::open("/dev/null", O_RDONLY);
  const auto sign = ServingSign::Attach(file);
  ASSERT_FALSE(sign);
  EXPECT_EQ(sign.error().code, ErrorCode::kInvalidArgument);
  ::close(file);
  EXPECT_FALSE(ServingSign::Attach(-1));
}

}  // namespace
}  // namespace tandem
