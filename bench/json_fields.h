#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::bench {

// An object of a scenario file, read field by field. Every getter takes a field off the list of those that nobody has
// asked for; Finish() refuses what is left, so that a misspelt field is an error and not a default. Errors begin with
// the place as a JSON pointer. Borrows the JSON, which must outlive it. Used by one thread.
class JsonFields {
 public:
  // kInvalidArgument when `value` is no object.
  [[nodiscard]] static Result<JsonFields> Of(const Json::Value& value, std::string pointer);

  // Texts are UTF-8 of 1 to kMaxText bytes, without control characters.
  [[nodiscard]] Result<std::string> Text(const std::string& name);
  [[nodiscard]] Result<std::string> TextOr(const std::string& name, std::string fallback);
  [[nodiscard]] Result<double> Number(const std::string& name, double low, double high);
  [[nodiscard]] Result<std::optional<double>> OptionalNumber(const std::string& name, double low, double high);
  [[nodiscard]] Result<int> Whole(const std::string& name, int low, int high);
  [[nodiscard]] Result<int> WholeOr(const std::string& name, int low, int high, int fallback);
  [[nodiscard]] Result<bool> FlagOr(const std::string& name, bool fallback);
  // A list of texts, or one text alone.
  [[nodiscard]] Result<std::vector<std::string>> Texts(const std::string& name);
  // The objects of a list of at most kMaxItems; a field that is not there is an empty one.
  [[nodiscard]] Result<std::vector<JsonFields>> Objects(const std::string& name);
  [[nodiscard]] Result<JsonFields> Object(const std::string& name);
  // The names of an object whose members are texts, and these; a field that is not there is an empty one.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> TextMembers(const std::string& name);

  [[nodiscard]] bool Has(const std::string& name) const { return value_->isMember(name); }
  // Where a field stands: "/rows/0/unit".
  [[nodiscard]] std::string At(const std::string& name) const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

  // kInvalidArgument for the first field that nobody asked for.
  [[nodiscard]] Status Finish() const;

  static constexpr std::size_t kMaxText = 4096;
  static constexpr std::size_t kMaxItems = 1000;

 private:
  JsonFields(const Json::Value& value, std::string pointer) : value_(&value), pointer_(std::move(pointer)) {}
  // The field, which counts as asked for from now on; null when it is not there.
  const Json::Value* Take(const std::string& name);
  // The field, or an error that it is missing.
  Result<const Json::Value*> Require(const std::string& name);

  const Json::Value* value_;
  std::string pointer_;
  std::set<std::string> asked_;
};

}  // namespace tandem::bench
