#pragma once

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::bench {

// The short forms in which a scenario file may write rows that are much alike; docs/benchmarks.md has them. All of
// these are pure and leave what is not of the right shape to whoever reads the plain form.

// Replaces the short forms by plain rows: sets by their rows, a row "for" several by one for each, "cell" of a
// measurement by the same in each of its rows, goals "under_quota" by plain ones; rows that are "quota_only" go where
// there is none. kInvalidArgument begins with the place in the file.
[[nodiscard]] Status ExpandRows(Json::Value& scenario);

// Gives this quota to every measurement that has one, before its rows are expanded. False when none has.
[[nodiscard]] bool SetQuota(Json::Value& scenario, double cores);

// Of plain rows with one title the first stays; a measurement without rows goes.
void DropRepeatedRows(Json::Value& scenario);

}  // namespace tandem::bench
