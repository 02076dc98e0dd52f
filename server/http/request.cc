#include "server/http/request.h"

#include <array>
#include <utility>

namespace tandem::http {
namespace {

constexpr std::array<std::pair<std::string_view, Method>, 7> kMethods = {{{"GET", Method::kGet},
                                                                          {"POST", Method::kPost},
                                                                          {"HEAD", Method::kHead},
                                                                          {"PUT", Method::kPut},
                                                                          {"DELETE", Method::kDelete},
                                                                          {"OPTIONS", Method::kOptions},
                                                                          {"PATCH", Method::kPatch}}};

}  // namespace

std::string_view MethodName(Method method) {
  for (const auto& [name, value] : kMethods) {
    if (value == method) return name;
  }
  return "";
}

Method ParseMethod(std::string_view name) {
  for (const auto& [known, value] : kMethods) {
    if (known == name) return value;
  }
  return Method::kOther;
}

std::string_view RequestHead::Header(std::string_view name) const {
  for (const Field& field : fields_) {
    if (View(field.name) == name) return View(field.value);
  }
  return {};
}

bool RequestHead::HasHeader(std::string_view name) const {
  for (const Field& field : fields_) {
    if (View(field.name) == name) return true;
  }
  return false;
}

}  // namespace tandem::http
