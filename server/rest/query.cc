#include "server/rest/query.h"

#include <algorithm>

#include "server/http/path.h"

namespace tandem::rest {

Result<Query> QueryOf(const Call& call, std::initializer_list<std::string_view> known) {
  TANDEM_ASSIGN(Query query, http::ParseQuery(call.exchange->request().head.query()));
  for (const auto& [name, value] : query) {
    if (std::ranges::contains(known, std::string_view(name))) continue;
    std::string names;
    for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
    return Invalid("query parameter '{}' is not known; known: {}", Excerpt(name), names.empty() ? "none" : names);
  }
  return query;
}

}  // namespace tandem::rest
