#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

using TableRows = std::vector<std::vector<std::string>>;

// Lines with columns as wide as their widest cell, the first one flush left: for a pipe, and for what may be wider than
// the terminal. All rows have as many cells as the first.
[[nodiscard]] std::string PlainTable(const TableRows& rows);

}  // namespace tandem::cli
