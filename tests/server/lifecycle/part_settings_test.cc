#include "server/lifecycle/part_settings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(DefaultSlo, IsNeverNothing) {
  ServeOptions options;
  EXPECT_EQ(DefaultSlo(options), std::nullopt);
  options.default_slo_ms = 50;
  EXPECT_EQ(DefaultSlo(options), 50ms);
  options.default_slo_ms = 0.5;
  EXPECT_EQ(DefaultSlo(options), 500us);
  // Rounded down, no request could be in time.
  options.default_slo_ms = 0.0004;
  EXPECT_EQ(DefaultSlo(options), 1us);
  options.default_slo_ms = 1e-300;
  EXPECT_EQ(DefaultSlo(options), 1us);
  options.default_slo_ms = 0.0012;
  EXPECT_EQ(DefaultSlo(options), 2us);
}

}  // namespace
}  // namespace tandem
