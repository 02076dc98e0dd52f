#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/base/training_job.h"

// The words for the kinds of a training job, as they stand in JSON.

namespace tandem {

inline constexpr std::array<std::pair<std::string_view, DataKind>, 4> kDataKinds = {
    {{"arrays", DataKind::kArrays},
     {"csv", DataKind::kCsv},
     {"images", DataKind::kImages},
     {"synthetic", DataKind::kSynthetic}}};

inline constexpr std::array<std::pair<std::string_view, LossKind>, 5> kLossKinds = {
    {{"cross_entropy", LossKind::kCrossEntropy},
     {"mse", LossKind::kMeanSquared},
     {"bce", LossKind::kBinaryCrossEntropy},
     {"l1", LossKind::kAbsolute},
     {"huber", LossKind::kHuber}}};

inline constexpr std::array<std::pair<std::string_view, OptimizerKind>, 3> kOptimizerKinds = {
    {{"sgd", OptimizerKind::kSgd}, {"adam", OptimizerKind::kAdam}, {"adamw", OptimizerKind::kAdamW}}};

inline constexpr std::array<std::pair<std::string_view, ScheduleKind>, 3> kScheduleKinds = {
    {{"constant", ScheduleKind::kConstant}, {"cosine", ScheduleKind::kCosine}, {"step", ScheduleKind::kStep}}};

inline constexpr std::array<std::pair<std::string_view, PublishRule>, 3> kPublishRules = {
    {{"never", PublishRule::kNever}, {"on_success", PublishRule::kOnSuccess}, {"if_better", PublishRule::kIfBetter}}};

// The word for a kind that the table has.
template <typename Table, typename Kind>
[[nodiscard]] constexpr std::string_view KindName(const Table& table, Kind kind) {
  return std::ranges::find(table, kind, &Table::value_type::second)->first;
}

}  // namespace tandem
