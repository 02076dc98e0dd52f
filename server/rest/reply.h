#pragma once

#include <utility>

#include <json/value.h>

#include "api/base/result.h"
#include "server/http/response.h"
#include "server/rest/json_body.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Turns what a control call returns into its answer.
inline http::Response ToResponse(const Result<Json::Value>& result) {
  return result ? http::JsonResponse(200, ToText(*result)) : http::ErrorResponse(result.error());
}

// A handler that answers at once from the call alone.
template <typename Function>
Handler Immediate(Function function) {
  return [function = std::move(function)](const Call& call) { call.exchange->Respond(ToResponse(function(call))); };
}

}  // namespace tandem::rest
