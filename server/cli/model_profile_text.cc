#include "server/cli/model_profile_text.h"

#include <algorithm>
#include <utility>

#include "api/base/format.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

Result<ProfiledOp> ReadNode(const Json::Value& op) {
  if (!op.isObject() || !op["kind"].isString() || !op["name"].isString() || !op["provider"].isString() ||
      !op["count"].isUInt64() || !op["total_ms"].isNumeric() || !op["typical_ms"].isNumeric() ||
      !op["share"].isNumeric()) {
    return Fail(ErrorCode::kInternal, "no node");
  }
  return ProfiledOp{.kind = op["kind"].asString(),
                    .name = op["name"].asString(),
                    .part = "",
                    .count = op["count"].asUInt64(),
                    .total_ms = op["total_ms"].asDouble(),
                    .typical_ms = op["typical_ms"].asDouble(),
                    .share = op["share"].asDouble(),
                    .heavy = false,
                    .why = "",
                    .pairings = {},
                    .provider = op["provider"].asString()};
}

Result<TrainingBeside> ReadBeside(const Json::Value& op) {
  if (!op.isObject() || !op["job"].isInt64() || !op["kind"].isString() || !op["name"].isString() ||
      !op["class"].isString() || !op["ratio"].isNumeric() || !op["why"].isString()) {
    return Fail(ErrorCode::kInternal, "no operator");
  }
  return TrainingBeside{.job = op["job"].asInt64(),
                        .kind = op["kind"].asString(),
                        .name = op["name"].asString(),
                        .op_class = op["class"].asString(),
                        .ratio = op["ratio"].asDouble(),
                        .why = op["why"].asString()};
}

// "x [1,64], y [3]"; nothing when they are not told as they should be.
Result<std::string> InputsText(const Json::Value& inputs) {
  std::string text;
  for (const Json::Value& input : inputs) {
    if (!input.isObject() || !input["name"].isString() || !input["shape"].isArray()) {
      return Fail(ErrorCode::kInternal, "no input");
    }
    AppendFormat(text, "{}{} [", text.empty() ? "" : ", ", input["name"].asString());
    for (const Json::Value& dimension : input["shape"]) {
      if (!dimension.isInt64()) return Fail(ErrorCode::kInternal, "no dimension");
      AppendFormat(text, "{}{}", text.ends_with('[') ? "" : ",", dimension.asInt64());
    }
    text += ']';
  }
  return text;
}

Result<ModelProfileView> Read(const Json::Value& answer) {
  if (!answer.isObject() || !answer["model"].isString() || !answer["version"].isString() ||
      !answer["inputs"].isArray() || !answer["runs"].isUInt64() || !answer["run_ms"].isNumeric() ||
      !answer["unread"].isUInt64() || !answer["total_ms"].isNumeric() || !answer["ops"].isArray() ||
      !answer["training"].isArray()) {
    return Fail(ErrorCode::kInternal, "no profile");
  }
  ModelProfileView view{.model = answer["model"].asString(),
                        .version = answer["version"].asString(),
                        .inputs = "",
                        .runs = answer["runs"].asUInt64(),
                        .run_ms = answer["run_ms"].asDouble(),
                        .unread = answer["unread"].asUInt64(),
                        .ops = {.total_ms = answer["total_ms"].asDouble(), .live = false, .ops = {}},
                        .training = {}};
  TANDEM_ASSIGN(view.inputs, InputsText(answer["inputs"]));
  for (const Json::Value& op : answer["ops"]) {
    TANDEM_ASSIGN(ProfiledOp node, ReadNode(op));
    view.ops.ops.push_back(std::move(node));
  }
  for (const Json::Value& op : answer["training"]) {
    TANDEM_ASSIGN(TrainingBeside beside, ReadBeside(op));
    view.training.push_back(std::move(beside));
  }
  return view;
}

std::string TrainingTable(const std::vector<TrainingBeside>& training, std::size_t most) {
  if (training.empty()) return "no trainer is known to slow it: none runs, or too few requests ran beside one\n";
  TableRows rows{{"training operator", "node", "job", "class", "requests beside it", "why"}};
  for (std::size_t i = 0; i < std::min(most, training.size()); ++i) {
    const TrainingBeside& op = training[i];
    rows.push_back(
        {op.kind, OrDash(op.name), std::to_string(op.job), op.op_class, Format("{:.2f} ×", op.ratio), op.why});
  }
  return "\n" + PlainTable(rows);
}

}  // namespace

Result<ModelProfileView> ReadModelProfile(const Json::Value& answer) {
  auto view = Read(answer);
  if (!view) return Fail(ErrorCode::kInternal, "the server's answer is no profile; is --url right?");
  return view;
}

std::string ModelProfileTable(const ModelProfileView& profile, std::size_t most) {
  TableRows rows{{"operator", "node", "provider", "count", "total ms", "typical ms", "share"}};
  const std::vector<ProfiledOp>& ops = profile.ops.ops;
  const std::size_t shown = std::min(most, ops.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ProfiledOp& op = ops[i];
    rows.push_back({op.kind, OrDash(op.name), op.provider, std::to_string(op.count), Format("{:.2f}", op.total_ms),
                    Format("{:.3f}", op.typical_ms), Format("{:.1f} %", 100 * op.share)});
  }
  std::string text = PlainTable(rows) + OthersLine(ops, shown);
  if (profile.unread > 0) AppendFormat(text, "{} nodes have names that spoil their record\n", profile.unread);
  AppendFormat(text,
               "{} version {}: a run typically takes {:.2f} ms, its operators {:.2f} ms on average; {} runs on {}\n",
               profile.model, profile.version, profile.run_ms,
               profile.runs > 0 ? profile.ops.total_ms / static_cast<double>(profile.runs) : 0, profile.runs,
               profile.inputs.empty() ? "nothing" : profile.inputs);
  return text + TrainingTable(profile.training, most);
}

}  // namespace tandem::cli
