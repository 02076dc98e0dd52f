#include "server/repository/version_policy.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/wire/proto/model_config.pb.h"

namespace tandem::repository {
namespace {

using inference::ModelVersionPolicy;
using testing::ElementsAre;
using Versions = std::vector<std::int64_t>;

TEST(VersionPolicy, WithoutAPolicyTheLatestVersionIsServed) {
  EXPECT_THAT(*ChooseVersions({}, Versions{1, 10, 9}), ElementsAre(10));
}

TEST(VersionPolicy, LatestServesTheHighestN) {
  ModelVersionPolicy policy;
  policy.mutable_latest()->set_num_versions(2);
  EXPECT_THAT(*ChooseVersions(policy, Versions{3, 1, 10}), ElementsAre(3, 10));
  EXPECT_THAT(*ChooseVersions(policy, Versions{3}), ElementsAre(3));
  policy.mutable_latest()->set_num_versions(0);
  EXPECT_THAT(*ChooseVersions(policy, Versions{3, 4}), ElementsAre(4));
}

TEST(VersionPolicy, AllServesAll) {
  ModelVersionPolicy policy;
  policy.mutable_all();
  EXPECT_THAT(*ChooseVersions(policy, Versions{2, 1}), ElementsAre(1, 2));
}

TEST(VersionPolicy, SpecificServesThoseNamedAndMissesNone) {
  ModelVersionPolicy policy;
  policy.mutable_specific()->add_versions(3);
  policy.mutable_specific()->add_versions(1);
  policy.mutable_specific()->add_versions(3);
  EXPECT_THAT(*ChooseVersions(policy, Versions{1, 2, 3}), ElementsAre(1, 3));
  const auto missing = ChooseVersions(policy, Versions{1, 2});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("version 3"));
  EXPECT_THAT(missing.error().message, testing::HasSubstr("[1,2]"));
}

TEST(VersionPolicy, AModelWithoutVersionsIsAnError) {
  EXPECT_FALSE(ChooseVersions({}, Versions{}));
}

RC_GTEST_PROP(VersionPolicy, LatestIsTheTopOfWhatIsThere,
              (const std::set<std::uint32_t>& numbers, std::uint8_t count)) {
  RC_PRE(!numbers.empty());
  const Versions available(numbers.begin(), numbers.end());
  ModelVersionPolicy policy;
  policy.mutable_latest()->set_num_versions(count);
  const auto chosen = ChooseVersions(policy, available);
  RC_ASSERT(chosen.has_value());
  RC_ASSERT(std::ranges::is_sorted(*chosen));
  RC_ASSERT(chosen->size() == std::min<std::size_t>(available.size(), std::max<std::size_t>(count, 1)));
  RC_ASSERT(chosen->back() == available.back());
}

}  // namespace
}  // namespace tandem::repository
