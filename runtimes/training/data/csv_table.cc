#include "runtimes/training/data/csv_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tandem::training {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Where the row that begins at `at` ends, with the end of its line; nullopt when it is too long. A quote inside a field
// is doubled, so that an odd number of quotes so far means that the line ends within a field.
std::optional<std::size_t> RowEnd(std::string_view text, std::size_t at) {
  const std::string_view reach = text.substr(at, CsvTable::kMaxRowBytes + 1);
  bool quoted = false;
  std::size_t from = 0;
  while (true) {
    const std::size_t line_end = reach.find('\n', from);
    const std::string_view line = reach.substr(from, line_end - from);
    if (line.contains('"')) quoted ^= std::ranges::count(line, '"') % 2 == 1;
    if (line_end == std::string_view::npos) break;
    if (!quoted) return at + line_end + 1;
    from = line_end + 1;
  }
  if (reach.size() > CsvTable::kMaxRowBytes) return std::nullopt;
  return text.size();
}

std::string_view WithoutLineEnd(std::string_view row) {
  while (row.ends_with('\n') || row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

// Takes a field in quotes from the front of `rest`. What is wrong with it, or null.
const char* TakeQuoted(std::string_view& rest, CsvRow& into) {
  const std::size_t begin = into.unquoted.size();
  std::size_t at = 1;
  while (true) {
    const std::size_t quote = rest.find('"', at);
    if (quote == std::string_view::npos) return "a quote is not closed";
    into.unquoted += rest.substr(at, quote - at);
    at = quote + 1;
    if (!rest.substr(at).starts_with('"')) break;
    into.unquoted += '"';
    ++at;
  }
  rest.remove_prefix(at);
  if (!rest.empty() && rest[0] != ',') return "there is text after the end of a quote";
  into.fields.push_back(std::string_view(into.unquoted).substr(begin));
  return nullptr;
}

const char* TakePlain(std::string_view& rest, CsvRow& into) {
  const std::string_view field = rest.substr(0, rest.find(','));
  if (field.contains('"')) return "there is a quote within a field that is not in quotes";
  into.fields.push_back(field);
  rest.remove_prefix(field.size());
  return nullptr;
}

// What is wrong with the row, or null.
const char* Split(std::string_view row, CsvRow& into) {
  into.fields.clear();
  into.unquoted.clear();
  // Fields are views into it: it must not move.
  into.unquoted.reserve(row.size());
  while (true) {
    if (into.fields.size() == CsvTable::kMaxColumns) return "there are more than 65536 columns";
    const char* wrong = row.starts_with('"') ? TakeQuoted(row, into) : TakePlain(row, into);
    if (wrong != nullptr) return wrong;
    if (row.empty()) return nullptr;
    row.remove_prefix(1);
  }
}

}  // namespace

Result<CsvTable> CsvTable::Open(const DataRoot& root, const std::string& path) {
  TANDEM_ASSIGN(MappedFile file, root.Map(path));
  CsvTable table(std::move(file), Shown(path));
  std::size_t at = table.file_.bytes().starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  TANDEM_TRY(table.ReadHeader(at));
  TANDEM_TRY(table.Index(at));
  if (table.starts_.empty()) return Invalid("'{}' has a header line and no examples", table.name_);
  return table;
}

Status CsvTable::ReadHeader(std::size_t& at) {
  const std::string_view text = file_.bytes();
  const auto end = RowEnd(text, at);
  if (!end) return Invalid("'{}', line 1: it is longer than {} bytes", name_, kMaxRowBytes);
  const std::string_view header = WithoutLineEnd(text.substr(at, *end - at));
  if (header.empty()) return Invalid("'{}', line 1: the names of the columns are not there", name_);
  CsvRow row;
  if (const char* wrong = Split(header, row)) return Invalid("'{}', line 1: {}", name_, wrong);
  columns_.assign(row.fields.begin(), row.fields.end());
  at = *end;
  return {};
}

Status CsvTable::Index(std::size_t at) {
  const std::string_view text = file_.bytes();
  while (at < text.size()) {
    const auto end = RowEnd(text, at);
    if (!end) return Invalid("'{}', line {}: the row is longer than {} bytes", name_, LineAt(at), kMaxRowBytes);
    if (!WithoutLineEnd(text.substr(at, *end - at)).empty()) starts_.push_back(at);
    at = *end;
  }
  starts_.shrink_to_fit();
  return {};
}

Result<std::size_t> CsvTable::Find(const std::string& column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found != columns_.end()) {
    if (std::find(found + 1, columns_.end(), column) != columns_.end()) {
      return Invalid("'{}' has more than one column '{}'", name_, Shown(column));
    }
    return static_cast<std::size_t>(found - columns_.begin());
  }
  std::string names;
  for (const std::string& name : columns_) {
    if (names.size() > 1000) break;
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  return Invalid("'{}' has no column '{}'; it has {}", name_, Shown(column), Shown(names));
}

std::int64_t CsvTable::LineAt(std::size_t offset) const {
  return 1 + std::ranges::count(file_.bytes().substr(0, offset), '\n');
}

Status CsvTable::Read(std::int64_t row, CsvRow& into) const {
  const auto index = static_cast<std::size_t>(row);
  const std::string_view text = file_.bytes();
  const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] : text.size();
  const char* wrong = Split(WithoutLineEnd(text.substr(starts_[index], end - starts_[index])), into);
  if (wrong != nullptr) return Invalid("'{}', line {}: {}", name_, LineAt(starts_[index]), wrong);
  if (into.fields.size() != columns_.size()) {
    return Invalid("'{}', line {}: it has {} fields, and the header {}", name_, LineAt(starts_[index]),
                   into.fields.size(), columns_.size());
  }
  return {};
}

std::unexpected<Error> CsvTable::BadField(std::int64_t row, std::size_t column, std::string_view why) const {
  return Invalid("'{}', line {}, column '{}': {}", name_, LineAt(starts_[static_cast<std::size_t>(row)]),
                 Shown(columns_[column]), why);
}

}  // namespace tandem::training
