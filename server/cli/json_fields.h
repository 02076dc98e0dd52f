#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::cli {

// The JSON object in a file: at most 1 MB, nested at most 32 levels deep, strict, no member twice.
[[nodiscard]] Result<Json::Value> ReadJsonObject(const std::string& file);

// A value as one line of JSON, cut where it is long; for messages.
[[nodiscard]] std::string JsonExcerpt(const Json::Value& value);

// Reads the members of one object that a person wrote. A member that is wrong is noted with its JSON pointer and its
// value, and reading goes on, so that all mistakes are told at once. What is absent leaves the target as it is. Members
// that nobody asked for are noted by Finish(). Borrows the object and the list; used by one thread.
class JsonFields {
 public:
  // `pointer` is that of the object: "" for the whole text, "/models/0" within it.
  JsonFields(const Json::Value& object, std::string pointer, std::vector<std::string>& mistakes);

  template <typename Target>  // double, or an optional of it.
  void Number(const char* name, Target& target, double least, double most) {
    if (const auto value = NumberOf(name, least, most)) {
      const double number = *value;
      target = number;
    }
  }
  template <typename Target>  // A whole number, or an optional of one.
  void Whole(const char* name, Target& target, std::int64_t least, std::int64_t most) {
    if (const auto value = WholeOf(name, least, most)) target = static_cast<ValueOf<Target>>(*value);
  }
  void Text(const char* name, std::string& target);  // Not empty.
  void Flag(const char* name, bool& target);

  // The member whatever it is; null when it is absent.
  [[nodiscard]] const Json::Value* Find(const char* name);
  [[nodiscard]] std::string PointerTo(std::string_view name) const;
  // "/models/0/rate is "x"; it must be …"
  void Mistake(std::string_view pointer, const Json::Value& value, std::string_view must);
  void Missing(std::string_view name, std::string_view why);
  void Finish();

 private:
  template <typename T>
  struct Unwrapped {
    using type = T;
  };
  template <typename T>
  struct Unwrapped<std::optional<T>> {
    using type = T;
  };
  template <typename T>
  using ValueOf = typename Unwrapped<T>::type;

  [[nodiscard]] std::optional<double> NumberOf(const char* name, double least, double most);
  [[nodiscard]] std::optional<std::int64_t> WholeOf(const char* name, std::int64_t least, std::int64_t most);

  const Json::Value& object_;
  const std::string pointer_;
  std::vector<std::string>& mistakes_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace tandem::cli
