#pragma once

#include "api/base/result.h"
#include "loadgen/request_csv.h"
#include "loadgen/run_report.h"
#include "server/cli/interruption.h"
#include "server/cli/loadgen_prepare.h"
#include "server/cli/loadgen_view.h"

namespace tandem::cli {

// One run from its first request to its judged report, shown in `view` as it goes. `csv` may be null.
[[nodiscard]] Result<loadgen::RunReport> RunPrepared(const PreparedLoad& prepared, Interruption& interruption,
                                                     LoadgenView& view, loadgen::RequestCsv* csv);

}  // namespace tandem::cli
