#include "server/rest/infer_call.h"

#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <format>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>

#include "api/wire/compression.h"
#include "api/wire/json_text.h"
#include "api/wire/rest_infer_decode.h"
#include "api/wire/rest_infer_encode.h"

namespace tandem::rest {
namespace {

using http::Method;

// Below this an answer costs more to compress than to send.
constexpr std::size_t kMinCompressed = 1024;
constexpr double kMaxSloMs = 86'400'000;

// What the encoder needs once the request itself has gone into the queue.
struct Asked {
  std::vector<RequestedOutput> outputs;
  bool binary_output = false;
  std::string_view encoding;  // For the answer; empty: as it is.
};

// What "Accept-Encoding: gzip, deflate;q=0.5" lets us use, gzip first; empty when nothing.
std::string_view AcceptedEncoding(std::string_view accepted) {
  const auto allows = [accepted](std::string_view coding) {
    for (const auto part : std::views::split(accepted, ',')) {
      std::string item;
      for (const char c : part) {
        if (c != ' ' && c != '\t') item += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
      const auto parameters = item.find(';');
      if (std::string_view(item).substr(0, parameters) != coding) continue;
      // Only q=0, q=0.0… refuse.
      return parameters == std::string::npos || item.find_first_of("123456789", parameters) != std::string::npos;
    }
    return false;
  };
  if (allows("gzip")) return "gzip";
  return allows("deflate") ? "deflate" : "";
}

Result<std::optional<std::uint64_t>> JsonLength(const http::RequestHead& head) {
  constexpr std::string_view kName = "inference-header-content-length";
  if (!head.HasHeader(kName)) return std::nullopt;
  const std::string_view text = head.Header(kName);
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return Invalid("header Inference-Header-Content-Length '{}' is not a length", Excerpt(text));
  }
  return length;
}

Result<std::optional<std::chrono::microseconds>> HeaderSlo(const http::RequestHead& head) {
  if (!head.HasHeader("x-slo-ms")) return std::nullopt;
  const std::string_view text = head.Header("x-slo-ms");
  double ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || !(ms > 0 && ms <= kMaxSloMs)) {
    return Invalid("header X-SLO-Ms '{}' is not a number of milliseconds above 0 and at most {:.0f}", Excerpt(text),
                   kMaxSloMs);
  }
  return std::chrono::microseconds(std::llround(std::ceil(ms * 1000)));
}

// The body as the decoder wants it: unpacked, within bounds.
Result<Bytes> PlainBody(const http::Request& request, std::size_t max_body) {
  const std::string_view text = request.head.Header("content-encoding");
  if (text.empty() || text == "identity") return request.body;
  if (!IsKnownEncoding(text)) {
    return Fail(ErrorCode::kUnsupported, "Content-Encoding '{}' is not supported; known: gzip, deflate", Excerpt(text));
  }
  return Inflate(request.body.view, text, max_body);
}

Result<InferRequest> ReadRequest(const Call& call, std::size_t max_body) {
  const http::Request& http = call.exchange->request();
  TANDEM_ASSIGN(const auto json_length, JsonLength(http.head));
  TANDEM_ASSIGN(const Bytes body, PlainBody(http, max_body));
  TANDEM_ASSIGN(InferRequest request, DecodeRestInfer(body, json_length));
  TANDEM_ASSIGN(const auto slo, HeaderSlo(http.head));
  if (slo) request.slo = request.slo ? std::min(*request.slo, *slo) : *slo;
  request.model = call.variables[0];
  if (call.variables.size() > 1) request.version = call.variables[1];
  request.arrival = http.arrival;
  request.cancel = call.exchange->cancel();
  return request;
}

std::string ServerTiming(const InferTiming& t) {
  using Ms = std::chrono::duration<double, std::milli>;
  return std::format("queue;dur={:.3f}, hold;dur=0, compute;dur={:.3f}", Ms(t.queue).count(),
                     Ms(t.compute_input + t.compute_infer + t.compute_output).count());
}

Status Compress(std::string_view encoding, http::Response& response) {
  std::vector<std::span<const std::byte>> plain = {std::as_bytes(std::span(response.body))};
  for (const Bytes& part : response.parts) plain.push_back(part.view);
  TANDEM_ASSIGN(std::string packed, Deflate(plain, encoding));
  response.body = std::move(packed);
  response.parts.clear();
  response.headers.emplace_back("Content-Encoding", std::string(encoding));
  return {};
}

Result<http::Response> WriteResponse(const InferResponse& answer, const Asked& asked) {
  TANDEM_ASSIGN(EncodedInfer encoded, EncodeRestInfer(answer, asked.outputs, asked.binary_output));
  http::Response response;
  if (encoded.has_binary) {
    response.content_type = "application/octet-stream";
    response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(encoded.json.size()));
  }
  response.headers.emplace_back("Server-Timing", ServerTiming(answer.timing));
  response.body = std::move(encoded.json);
  response.parts = std::move(encoded.parts);
  if (!asked.encoding.empty() && response.content_size() >= kMinCompressed) {
    TANDEM_TRY(Compress(asked.encoding, response));
  }
  return response;
}

std::size_t OutputBytes(const InferResponse& answer) {
  std::size_t bytes = 0;
  for (const Tensor& output : answer.outputs) bytes += output.data.size();
  return bytes;
}

void Answer(http::Exchange& exchange, const InferResponse& answer, const Asked& asked) {
  Result<http::Response> response = WriteResponse(answer, asked);
  exchange.Respond(response ? *std::move(response) : http::ErrorResponse(response.error()));
}

void Infer(ServerCore& core, std::size_t max_body, const Call& call) {
  Result<InferRequest> request = ReadRequest(call, max_body);
  if (!request) return call.exchange->Respond(http::ErrorResponse(request.error()));
  Asked asked{.outputs = request->outputs,
              .binary_output = request->binary_output,
              .encoding = AcceptedEncoding(call.exchange->request().head.Header("accept-encoding"))};
  core.inference.Infer(*std::move(request), [&core, exchange = call.exchange,
                                             asked = std::move(asked)](Result<InferResponse> answer) mutable {
    if (!answer) return exchange->Respond(http::ErrorResponse(answer.error()));
    // With others under way the device's thread goes on to the next run, and the front end encodes. Else it has nothing
    // better to do, and to wake the front end would take longer.
    if (core.inference.in_flight() <= 1 && OutputBytes(*answer) <= http::kCopyLimit) {
      return Answer(*exchange, *answer, asked);
    }
    http::Exchange& front = *exchange;
    front.Post([exchange = std::move(exchange), asked = std::move(asked), answer = *std::move(answer)] {
      Answer(*exchange, answer, asked);
    });
  });
}

}  // namespace

void AddInferRoutes(ServerCore& core, std::size_t max_body, std::vector<Route>& routes) {
  const Handler infer = [c = &core, max_body](const Call& call) { Infer(*c, max_body, call); };
  routes.insert(routes.end(), {
                                  {Method::kPost, "/v2/models/{model}/infer", infer},
                                  {Method::kPost, "/v2/models/{model}/versions/{version}/infer", infer},
                              });
}

}  // namespace tandem::rest
