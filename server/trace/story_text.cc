#include "server/trace/story_text.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/trace/request_words.h"

namespace tandem::trace {
namespace {

// Of what happened meanwhile, so much is listed: the last.
constexpr std::size_t kMostListed = 64;

template <typename T>
std::span<const T> Last(const std::vector<T>& all) {
  return std::span(all).last(std::min(all.size(), kMostListed));
}

Json::Value Micros(std::chrono::nanoseconds time) {
  return static_cast<Json::Int64>(std::chrono::floor<std::chrono::microseconds>(time).count());
}

template <typename Time>
Json::Value MicrosOrNull(const std::optional<Time>& time, MonotonicTime since) {
  return time ? Micros(*time - since) : Json::Value();
}

Json::Value MicrosOrNull(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? Micros(*time) : Json::Value();
}

const char* VerdictName(Admitted verdict) {
  switch (verdict) {
    case Admitted::kQueued: return "queued";
    case Admitted::kAtOnce: return "run_at_once";
    case Admitted::kStopping: return "refused_shutting_down";
    case Admitted::kGone: return "refused_client_gone";
    case Admitted::kLate: return "refused_late";
    case Admitted::kModelFull: return "refused_model_queue_full";
    case Admitted::kFull: return "refused_queue_full";
    case Admitted::kHopeless: return "refused_not_in_time";
    case Admitted::kNoModel: return "refused_no_model";
    case Admitted::kNoVersion: return "refused_no_version";
    case Admitted::kNotReady: return "refused_not_ready";
    case Admitted::kUnfit: return "refused_wrong";
    case Admitted::kNoMemory: return "refused_no_memory";
  }
  return "";
}

Json::Value SloName(SloVerdict slo) {
  switch (slo) {
    case SloVerdict::kMet: return "met";
    case SloVerdict::kMissed: return "missed";
    case SloVerdict::kRejected: return "rejected";
    case SloVerdict::kNone: break;
  }
  return {};
}

Json::Value RunJson(const BatchRun& run, MonotonicTime since) {
  Json::Value json(Json::objectValue);
  json["batch"] = Json::UInt64{run.batch};
  json["model"] = run.model;
  json["version"] = std::to_string(run.version);
  json["requests"] = Json::Int64{run.requests};
  json["elements"] = Json::Int64{run.elements};
  json["worker"] = run.worker == kFrontEnd ? Json::Value() : Json::Value(run.worker);
  json["threads"] = run.narrow ? "one" : "all";
  json["began_us"] = Micros(run.began - since);
  json["ended_us"] = MicrosOrNull(run.ended, since);
  json["expected_us"] = MicrosOrNull(run.expected);
  json["failed"] = run.error.has_value();
  return json;
}

Json::Value AdmissionJson(const RequestAdmission& admission, MonotonicTime since) {
  Json::Value json(Json::objectValue);
  json["at_us"] = Micros(admission.at - since);
  json["verdict"] = VerdictName(admission.verdict);
  json["elements"] = Json::Int64{admission.elements};
  json["waiting"] = Json::Int64{admission.waiting};
  json["left_us"] = MicrosOrNull(admission.left);
  json["work_ahead_us"] = admission.left ? Micros(admission.ahead) : Json::Value();
  json["own_run_us"] = MicrosOrNull(admission.run);
  json["own_run_counted"] = admission.run && admission.weight == RunWeight::kCounted;
  return json;
}

Json::Value SpanJson(const TrainingSpan& span, MonotonicTime since) {
  Json::Value json(Json::objectValue);
  json["from_us"] = Micros(span.from - since);
  json["to_us"] = MicrosOrNull(span.to, since);
  json["state"] = StateOf(span);
  json["trainers"] = Json::Int64{span.trainers};
  json["reason"] = ReasonOf(span);
  return json;
}

}  // namespace

Json::Value StoryJson(const RequestStory& story) {
  Json::Value json(Json::objectValue);
  json["request"] = RequestName(story.number);
  json["id"] = story.id;
  json["model"] = story.model;
  json["arrived_us_ago"] = Micros(story.told - story.arrived);
  json["outcome"] = story.answered ? Json::Value(std::string(RequestOutcomeName(story.outcome))) : Json::Value();
  json["slo"] = SloName(story.slo);
  json["missed_by"] = story.cause == MissCause::kNone ? Json::Value() : std::string(MissCauseName(story.cause));
  json["training_added_us"] = MicrosOrNull(story.added);
  json["deadline_us"] = MicrosOrNull(story.deadline, story.arrived);
  json["answered_us"] = MicrosOrNull(story.answered, story.arrived);
  json["admission"] = story.admission ? AdmissionJson(*story.admission, story.arrived) : Json::Value();
  json["runs"] = Json::Value(Json::arrayValue);
  for (const BatchRun& run : story.runs) json["runs"].append(RunJson(run, story.arrived));
  json["meanwhile"] = Json::Value(Json::arrayValue);
  if (story.waiting) {
    for (const OtherRun& other : Last(story.waiting->others)) {
      Json::Value& one = json["meanwhile"].append(RunJson(other.run, story.arrived));
      one["blocked_us"] = Micros(other.blocked);
    }
  }
  json["training"] = Json::Value(Json::arrayValue);
  for (const TrainingSpan& span : Last(story.training)) json["training"].append(SpanJson(span, story.arrived));
  json["trainers"]["running"] = Json::Int64{story.trainers.running};
  json["trainers"]["waiting"] = Json::Int64{story.trainers.waiting};
  json["trainers"]["paused"] = Json::Int64{story.trainers.paused};
  json["words"] = Json::Value(Json::arrayValue);
  for (const std::string& line : WordsOf(story)) json["words"].append(line);
  return json;
}

std::string StoryText(const RequestStory& story) {
  std::string text = "request " + RequestName(story.number);
  if (!story.id.empty()) text += Format(" (id '{}')", Excerpt(story.id));
  if (!story.model.empty()) text += " of model " + story.model;
  text += '\n';
  for (const std::string& line : WordsOf(story)) text += Format("  {}\n", line);
  return text;
}

}  // namespace tandem::trace
