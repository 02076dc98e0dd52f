#pragma once

#include <string_view>

namespace tandem::loadgen {

// report_page.html with its style and its script, and @REPORT@ where the JSON of a run goes.
[[nodiscard]] std::string_view ReportPage();

}  // namespace tandem::loadgen
