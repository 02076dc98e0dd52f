#include "server/cli/demo_served.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "api/wire/infer_answer.h"
#include "server/cli/demo_digits.h"

namespace tandem::cli {
namespace {

// As our server writes it, before any data.
std::optional<std::int64_t> VersionIn(std::string_view body) {
  constexpr std::string_view kMember = "\"model_version\":\"";
  const std::size_t at = body.find(kMember);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t version = 0;
  const char* const begin = body.data() + at + kMember.size();
  const auto [end, error] = std::from_chars(begin, body.data() + body.size(), version);
  return error == std::errc() && end != begin ? std::optional(version) : std::nullopt;
}

}  // namespace

Status ServedDigits::Take(const std::string& body) {
  const std::optional<std::int64_t> version = VersionIn(body);
  if (!version) return Fail(ErrorCode::kInternal, "an answer does not name its version");
  TANDEM_ASSIGN(const std::vector<Tensor> outputs, DecodeRestAnswer(body));
  constexpr auto kClasses = static_cast<std::size_t>(kDigitClasses);
  if (outputs.size() != 1 || outputs[0].type != DataType::kFp32 ||
      outputs[0].data.size() != labels_.size() * kClasses * sizeof(float)) {
    return Fail(ErrorCode::kInternal, "an answer does not hold {} scores for each picture", kClasses);
  }
  std::vector<float> scores(labels_.size() * kClasses);
  std::memcpy(scores.data(), outputs[0].data.view.data(), outputs[0].data.size());
  VersionScore& score = versions_[*version];
  ++score.answers;
  score.pictures += labels_.size();
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
    score.right += std::max_element(first, first + kDigitClasses) - first == labels_[i] ? 1 : 0;
  }
  return {};
}

VersionScore ServedDigits::Of(std::int64_t version) const {
  const auto found = versions_.find(version);
  return found == versions_.end() ? VersionScore{} : found->second;
}

}  // namespace tandem::cli
