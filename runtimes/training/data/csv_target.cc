#include "runtimes/training/data/csv_target.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "api/base/format.h"
#include "runtimes/training/data/class_labels.h"

namespace tandem::training {
namespace {

constexpr std::size_t kMostTexts = 65'536;

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

template <typename T>
std::optional<T> Parse(std::string_view text) {
  text = Trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Tools that know no whole numbers write 3 as 3.0.
std::optional<std::int64_t> ParseClass(std::string_view text) {
  if (const auto whole = ParseWhole(text)) return whole;
  const auto number = ParseNumber(text);
  if (!number || std::trunc(*number) != *number || std::abs(*number) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// Calls f(row, field) for the target of every row.
template <typename F>
Status ForEach(const CsvTable& table, std::size_t column, const F& f) {
  CsvRow fields;
  for (std::int64_t row = 0; row < table.size(); ++row) {
    TANDEM_TRY(table.Read(row, fields));
    TANDEM_TRY(f(row, fields.fields[column]));
  }
  return {};
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  const auto number = Parse<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::int64_t> ParseWhole(std::string_view text) {
  return Parse<std::int64_t>(text);
}

std::string NoNumber(std::string_view field, std::string_view kind) {
  if (Trimmed(field).empty()) return "it is empty";
  return Format("'{}' is no {}", Shown(field), kind);
}

Result<CsvTarget> CsvTarget::Make(const CsvTable& table, std::size_t column, const DataNeeds& needs) {
  CsvTarget target(column, needs.classes);
  if (!needs.classes) {
    TANDEM_TRY(target.TakeNumbers(table));
    return target;
  }
  CsvRow first;
  TANDEM_TRY(table.Read(0, first));
  if (ParseNumber(first.fields[column])) {
    TANDEM_TRY(target.TakeClassNumbers(table, needs.class_count));
  } else {
    TANDEM_TRY(target.TakeTexts(table, needs.class_count));
  }
  return target;
}

Status CsvTarget::TakeNumbers(const CsvTable& table) {
  return ForEach(table, column_, [&](std::int64_t row, std::string_view field) {
    float value = 0;
    return Store(table, row, field, reinterpret_cast<std::byte*>(&value));
  });
}

Status CsvTarget::TakeClassNumbers(const CsvTable& table, std::int64_t known) {
  ClassCount count(known);
  TANDEM_TRY(ForEach(table, column_, [&](std::int64_t row, std::string_view field) -> Status {
    const auto label = ParseClass(field);
    if (!label) return table.BadField(row, column_, NoNumber(field, "class number, as that of the first row is"));
    if (!count.Take(*label)) return table.BadField(row, column_, count.Refusal(*label));
    return {};
  }));
  classes_ = count.count();
  return {};
}

Status CsvTarget::TakeTexts(const CsvTable& table, std::int64_t known) {
  const std::size_t most = known > 0 ? static_cast<std::size_t>(known) : kMostTexts;
  std::set<std::string, std::less<>> texts;
  TANDEM_TRY(ForEach(table, column_, [&](std::int64_t row, std::string_view field) -> Status {
    if (field.empty()) return table.BadField(row, column_, "the class is empty");
    if (texts.contains(field)) return {};
    if (texts.size() == most) {
      return table.BadField(row, column_, Format("'{}' is one class more than {}", Shown(field), most));
    }
    texts.emplace(field);
    return {};
  }));
  names_.assign(texts.begin(), texts.end());
  classes_ = known > 0 ? known : std::ssize(names_);
  return {};
}

Status CsvTarget::Store(const CsvTable& table, std::int64_t row, std::string_view field, std::byte* out) const {
  if (!is_class_) {
    const auto number = ParseNumber(field);
    if (!number) return table.BadField(row, column_, NoNumber(field, "number"));
    const auto value = static_cast<float>(*number);
    if (!std::isfinite(value)) return table.BadField(row, column_, NoNumber(field, "value of FP32"));
    std::memcpy(out, &value, sizeof value);
    return {};
  }
  // All were looked at before; a file that somebody writes to meanwhile may still surprise.
  std::optional<std::int64_t> label;
  if (names_.empty()) {
    label = ParseClass(field);
  } else if (const auto found = std::ranges::lower_bound(names_, field); found != names_.end() && *found == field) {
    label = found - names_.begin();
  }
  if (!label || *label < 0 || *label >= classes_) return table.BadField(row, column_, NoNumber(field, "known class"));
  std::memcpy(out, &*label, sizeof *label);
  return {};
}

}  // namespace tandem::training
