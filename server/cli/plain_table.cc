#include "server/cli/plain_table.h"

#include <algorithm>

#include "api/base/format.h"

namespace tandem::cli {

std::string PlainTable(const TableRows& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? Format("{:<{}}", row[i], widths[i]) : Format("  {:>{}}", row[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tandem::cli
