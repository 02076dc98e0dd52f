#include "server/cli/train_turns.h"

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

std::string Text(const Json::Value& value) {
  return value.isString() ? Excerpt(value.asString()) : "-";
}

std::string Number(const Json::Value& value, int digits) {
  return value.isNumeric() ? Format("{:.{}f}", value.asDouble(), digits) : "-";
}

}  // namespace

Result<std::string> TurnsText(const Json::Value& answer) {
  if (!answer.isObject() || !answer["policy"].isString() || !answer["jobs"].isArray()) {
    return Fail(ErrorCode::kInternal, "the server's answer is not about turns; is --url right?");
  }
  const std::string head =
      Format("policy {}, {} switches so far\n", Text(answer["policy"]), Number(answer["switches"], 0));
  if (answer["jobs"].empty()) return head + "no job is being trained\n";
  TableRows rows = {{"job", "lane", "priority", "state", "turns", "ran s", "waited s", "left s"}};
  for (const Json::Value& job : answer["jobs"]) {
    if (!job.isObject()) return Fail(ErrorCode::kInternal, "the server's answer is not about turns");
    rows.push_back({Number(job["job"], 0), Number(job["lane"], 0), Number(job["priority"], 0), Text(job["state"]),
                    Number(job["turns"], 0), Number(job["ran_seconds"], 1), Number(job["waited_seconds"], 1),
                    Number(job["remaining_seconds"], 1)});
  }
  return head + PlainTable(rows);
}

}  // namespace tandem::cli
