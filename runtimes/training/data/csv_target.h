#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "runtimes/training/data/csv_table.h"
#include "runtimes/training/data/example_source.h"

namespace tandem::training {

// Text as a number: the whole of it, without blanks around; nothing that is not finite.
[[nodiscard]] std::optional<double> ParseNumber(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> ParseWhole(std::string_view text);

// What a field of a CSV file says, for messages: "'abc' is no number".
[[nodiscard]] std::string NoNumber(std::string_view field, std::string_view kind);

// The column of a CSV file that is learnt. Classes are numbers if the first row's is one, else texts that get numbers
// in their sorted order. Thread-safe: nothing changes once it is made.
class CsvTarget {
 public:
  // Looks at all rows.
  [[nodiscard]] static Result<CsvTarget> Make(const CsvTable& table, std::size_t column, const DataNeeds& needs);

  [[nodiscard]] std::int64_t classes() const { return classes_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // Writes the target of one row: an INT64 for classes, else an FP32.
  [[nodiscard]] Status Store(const CsvTable& table, std::int64_t row, std::string_view field, std::byte* out) const;

 private:
  CsvTarget(std::size_t column, bool is_class) : column_(column), is_class_(is_class) {}

  [[nodiscard]] Status TakeNumbers(const CsvTable& table);
  [[nodiscard]] Status TakeClassNumbers(const CsvTable& table, std::int64_t known);
  [[nodiscard]] Status TakeTexts(const CsvTable& table, std::int64_t known);

  // Constant after Make.
  std::size_t column_;
  bool is_class_;
  std::int64_t classes_ = 0;
  std::vector<std::string> names_;  // Sorted.
};

}  // namespace tandem::training
