#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <json/value.h>

namespace tandem {

// One thing that is wrong in a document: where (a JSON pointer, "" for the whole), and a sentence that names the place,
// the value and what it must be.
struct JsonMistake {
  std::string pointer;
  std::string message;

  friend bool operator==(const JsonMistake&, const JsonMistake&) = default;
};

// What a number may be; `above` and `below` leave out the bound itself.
struct NumberBounds {
  double least = 0;
  double most = 0;
  bool above = false;
  bool below = false;

  [[nodiscard]] bool Hold(double number) const;  // Never for NaN.
  [[nodiscard]] std::string Words() const;       // "a number from 0 to 1"
};

// The texts that stand for the values of an enumeration.
template <typename Kind>
using KindNames = std::span<const std::pair<std::string_view, Kind>>;

// Reads the members of one object that a person wrote. A member that is wrong is noted with its JSON pointer and its
// value, and reading goes on, so that all mistakes are told at once. What is absent leaves the target as it is. Members
// that nobody asked for are noted by Finish(). Borrows the object and the list; used by one thread.
class JsonFields {
 public:
  // `pointer` is that of the object: "" for the whole text, "/models/0" within it.
  JsonFields(const Json::Value& object, std::string pointer, std::vector<JsonMistake>& mistakes);

  template <typename Target>  // double, or an optional of it.
  void Number(const char* name, Target& target, NumberBounds bounds) {
    if (const auto value = NumberOf(name, bounds)) {
      const double number = *value;
      target = number;
    }
  }
  template <typename Target>
  void Number(const char* name, Target& target, double least, double most) {
    Number(name, target, {.least = least, .most = most});
  }
  template <typename Target>  // A whole number, or an optional of one.
  void Whole(const char* name, Target& target, std::int64_t least, std::int64_t most) {
    if (const auto value = WholeOf(name, least, most)) target = static_cast<ValueOf<Target>>(*value);
  }
  void Text(const char* name, std::string& target);  // Not empty.
  void Flag(const char* name, bool& target);
  // False when the member is there and names no kind.
  template <typename Kind>
  bool Choice(const char* name, Kind& target, std::type_identity_t<KindNames<Kind>> names) {
    std::vector<std::string_view> texts;
    for (const auto& [text, kind] : names) texts.push_back(text);
    const std::optional<std::size_t> chosen = ChoiceOf(name, texts);
    if (!chosen) return false;
    if (*chosen < names.size()) target = names[*chosen].second;
    return true;
  }

  // The member whatever it is; null when it is absent.
  [[nodiscard]] const Json::Value* Find(const char* name);
  // The member when it is an object; null when it is absent, or another value, which is noted.
  [[nodiscard]] const Json::Value* Object(const char* name);
  [[nodiscard]] std::string PointerTo(std::string_view name) const;
  // "/models/0/rate is "x"; it must be …"
  void Mistake(std::string_view pointer, const Json::Value& value, std::string_view must);
  // "/models/0/rate is 3, but /models/0/users is 2"; the member must be there.
  void Contradiction(const char* name, std::string_view but);
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

  [[nodiscard]] std::optional<double> NumberOf(const char* name, NumberBounds bounds);
  [[nodiscard]] std::optional<std::int64_t> WholeOf(const char* name, std::int64_t least, std::int64_t most);
  // The place of the member's text in the list; the list's size when the member is absent, nothing when it is wrong.
  [[nodiscard]] std::optional<std::size_t> ChoiceOf(const char* name, std::span<const std::string_view> texts);

  const Json::Value& object_;
  const std::string pointer_;
  std::vector<JsonMistake>& mistakes_;
  std::set<std::string, std::less<>> known_;
};

// "one of "a", "b"", for messages.
[[nodiscard]] std::string OneOf(std::span<const std::string_view> texts);

}  // namespace tandem
