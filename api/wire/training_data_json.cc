#include "api/wire/training_data_json.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "api/wire/training_job_names.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxInputs = 64;
constexpr std::size_t kMaxColumns = 4096;
constexpr std::size_t kMaxChannels = 4;
constexpr double kMaxMean = 1000;
constexpr std::int64_t kMaxClasses = 1'000'000;

bool IsJobText(const Json::Value& value, std::size_t most) {
  if (!value.isString()) return false;
  const std::string text = value.asString();
  return !text.empty() && text.size() <= most && IsPrintableUtf8(text);
}

bool IsConfinedPath(const Json::Value& value) {
  if (!IsJobText(value, kMaxJobPath)) return false;
  const std::filesystem::path path(value.asString());
  return !path.is_absolute() && std::ranges::find(path, std::filesystem::path("..")) == path.end();
}

void ReadPath(JsonFields& fields, std::string& target) {
  const Json::Value* const value = fields.Find("path");
  if (value == nullptr) return;
  if (IsConfinedPath(*value)) {
    target = value->asString();
  } else {
    fields.Mistake(fields.PointerTo("path"), *value,
                   Format("a relative path without '..', of 1 to {} bytes of printable text", kMaxJobPath));
  }
}

// What the name of the file says.
std::optional<DataKind> KindOfPath(std::string_view path) {
  if (path.ends_with(".npz")) return DataKind::kArrays;
  if (path.ends_with(".csv")) return DataKind::kCsv;
  return std::nullopt;
}

void ReadInputs(JsonFields& fields, std::map<std::string, std::string>& target) {
  const Json::Value* const value = fields.Find("inputs");
  if (value == nullptr) return;
  const std::string pointer = fields.PointerTo("inputs");
  if (!value->isObject() || value->empty() || value->size() > kMaxInputs) {
    fields.Mistake(pointer, *value, Format("an object of 1 to {} inputs and their arrays", kMaxInputs));
    return;
  }
  for (const std::string& name : value->getMemberNames()) {
    const std::string place = JsonPointer(pointer, name);
    if (!IsJobText(name, kMaxJobText)) {
      fields.Mistake(place, name, Format("a name of 1 to {} bytes of printable text", kMaxJobText));
      continue;
    }
    ReadJobText(fields, place, (*value)[name], target[name]);
  }
}

// A number for each channel.
void ReadChannels(JsonFields& fields, const char* name, NumberBounds bounds, std::vector<double>& target) {
  const Json::Value* const value = fields.Find(name);
  if (value == nullptr) return;
  bool good = value->isArray() && !value->empty() && value->size() <= kMaxChannels;
  std::vector<double> numbers;
  for (Json::ArrayIndex i = 0; good && i < value->size(); ++i) {
    good = (*value)[i].isNumeric() && bounds.Hold((*value)[i].asDouble());
    if (good) numbers.push_back((*value)[i].asDouble());
  }
  if (good) {
    target = std::move(numbers);
  } else {
    fields.Mistake(fields.PointerTo(name), *value,
                   Format("a list of 1 to {}, for each channel {}", kMaxChannels, bounds.Words()));
  }
}

// The kind that is given or follows from the path; nothing when it is wrong or missing, which is noted.
std::optional<DataKind> ReadKind(JsonFields& fields, const std::string& path, bool path_given) {
  DataKind kind = DataKind::kArrays;
  const bool given = fields.Find("kind") != nullptr;
  if (!fields.Choice("kind", kind, kDataKinds)) return std::nullopt;
  const std::optional<DataKind> told = KindOfPath(path);
  if (given) {
    if (told && *told != kind && kind != DataKind::kSynthetic) {
      fields.Contradiction("kind", Format("{} is \"{}\"", fields.PointerTo("path"), Excerpt(path)));
    }
    return kind;
  }
  if (told) return told;
  // Of a path that is wrong nothing follows, and its own mistake is enough.
  if (path_given && path.empty()) return std::nullopt;
  fields.Missing("kind",
                 "it follows only from a path that ends in .npz or .csv; else \"arrays\" (a folder of .npy "
                 "files), \"csv\", \"images\" or \"synthetic\"");
  return std::nullopt;
}

// A field may stand where its kind has no use for it only while it says nothing.
void CheckKind(JsonFields& fields, const DataSpec& data) {
  const DataSpec plain;
  const auto only = [&](const char* name, bool said, std::initializer_list<DataKind> kinds) {
    if (!said || std::ranges::contains(kinds, data.kind)) return;
    fields.Contradiction(name, Format("data of kind {} has no such field", KindName(kDataKinds, data.kind)));
  };
  only("path", !data.path.empty(), {DataKind::kArrays, DataKind::kCsv, DataKind::kImages});
  only("inputs", !data.inputs.empty(), {DataKind::kArrays});
  only("target", data.target != plain.target, {DataKind::kArrays, DataKind::kCsv});
  only("columns", !data.columns.empty(), {DataKind::kCsv});
  only("mean", !data.mean.empty(), {DataKind::kImages});
  only("std", !data.deviation.empty(), {DataKind::kImages});
  only("samples", data.samples != plain.samples, {DataKind::kSynthetic});
  only("classes", data.classes != plain.classes, {DataKind::kSynthetic});
  if (data.kind == DataKind::kCsv && std::ranges::contains(data.columns, data.target)) {
    fields.Contradiction("columns", Format("\"{}\" is the target", Excerpt(data.target)));
  }
  if (data.kind == DataKind::kSynthetic && fields.Find("samples") == nullptr) {
    fields.Missing("samples", "synthetic data needs their number");
  }
  if (data.kind != DataKind::kSynthetic && fields.Find("path") == nullptr) {
    fields.Missing("path", "where the examples lie below the server's data root");
  }
}

void CheckChannels(JsonFields& fields, const DataSpec& data) {
  const bool mean = fields.Find("mean") != nullptr;
  const bool deviation = fields.Find("std") != nullptr;
  if (mean && !deviation) fields.Missing("std", "mean and std go together");
  if (deviation && !mean) fields.Missing("mean", "mean and std go together");
  if (!data.mean.empty() && !data.deviation.empty() && data.mean.size() != data.deviation.size()) {
    fields.Contradiction("std", Format("mean has {} channels", data.mean.size()));
  }
}

}  // namespace

void ReadJobText(JsonFields& fields, const std::string& pointer, const Json::Value& value, std::string& target) {
  if (IsJobText(value, kMaxJobText)) {
    target = value.asString();
  } else {
    fields.Mistake(pointer, value, Format("a text of 1 to {} bytes without control characters", kMaxJobText));
  }
}

void ReadJobText(JsonFields& fields, const char* name, std::string& target) {
  if (const Json::Value* value = fields.Find(name)) ReadJobText(fields, fields.PointerTo(name), *value, target);
}

void ReadJobName(JsonFields& fields, const std::string& pointer, const Json::Value& value, std::string& target) {
  if (IsJobText(value, kMaxJobText)) {
    std::string name = value.asString();
    if (!name.starts_with('.') && name.find_first_of("/\\") == std::string::npos) {
      target = std::move(name);
      return;
    }
  }
  fields.Mistake(
      pointer, value,
      Format("a name of 1 to {} bytes without '/', '\\' and control characters, and no '.' in front", kMaxJobText));
}

void ReadJobTexts(JsonFields& fields, const char* name, std::size_t most, std::vector<std::string>& target) {
  const Json::Value* const value = fields.Find(name);
  if (value == nullptr) return;
  const std::string pointer = fields.PointerTo(name);
  if (value->isString()) return ReadJobText(fields, pointer, *value, target.emplace_back());
  if (!value->isArray() || value->empty() || value->size() > most) {
    return fields.Mistake(pointer, *value, Format("a text, or a list of 1 to {} texts", most));
  }
  for (Json::ArrayIndex i = 0; i < value->size(); ++i) {
    ReadJobText(fields, Format("{}/{}", pointer, i), (*value)[i], target.emplace_back());
  }
}

DataSpec ReadDataSpec(const Json::Value& value, const std::string& pointer, std::vector<JsonMistake>& mistakes) {
  DataSpec data;
  Json::Value object = value;
  if (value.isString()) {
    object = Json::Value(Json::objectValue);
    object["path"] = value;
  }
  JsonFields fields(object, pointer, mistakes);
  if (!object.isObject()) {
    fields.Mistake(pointer, value, "a path, or an object with a \"path\"");
    return data;
  }
  ReadPath(fields, data.path);
  const std::optional<DataKind> kind = ReadKind(fields, data.path, object.isMember("path"));
  ReadInputs(fields, data.inputs);
  ReadJobText(fields, "target", data.target);
  ReadJobTexts(fields, "columns", kMaxColumns, data.columns);
  ReadChannels(fields, "mean", {.least = -kMaxMean, .most = kMaxMean}, data.mean);
  ReadChannels(fields, "std", {.least = 0, .most = kMaxMean, .above = true}, data.deviation);
  fields.Whole("samples", data.samples, 1, kMaxJobCount);
  fields.Whole("classes", data.classes, 0, kMaxClasses);
  CheckChannels(fields, data);
  if (kind) {
    data.kind = *kind;
    CheckKind(fields, data);
  }
  fields.Finish();
  return data;
}

Json::Value DataSpecToJson(const DataSpec& data) {
  Json::Value json(Json::objectValue);
  json["kind"] = std::string(KindName(kDataKinds, data.kind));
  if (data.kind != DataKind::kSynthetic) json["path"] = data.path;
  if (data.kind == DataKind::kArrays || data.kind == DataKind::kCsv) json["target"] = data.target;
  for (const auto& [input, array] : data.inputs) json["inputs"][input] = array;
  for (const std::string& column : data.columns) json["columns"].append(column);
  for (const double mean : data.mean) json["mean"].append(mean);
  for (const double deviation : data.deviation) json["std"].append(deviation);
  if (data.kind == DataKind::kSynthetic) {
    json["samples"] = Json::Int64{data.samples};
    json["classes"] = Json::Int64{data.classes};
  }
  return json;
}

}  // namespace tandem
