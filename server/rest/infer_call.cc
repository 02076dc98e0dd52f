#include "server/rest/infer_call.h"

#include <cctype>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/wire/compression.h"
#include "api/wire/json_text.h"
#include "api/wire/rest_infer_decode.h"
#include "api/wire/rest_infer_encode.h"
#include "api/wire/slo_header.h"
#include "profiler/flight_events.h"
#include "server/http/body_buffer.h"
#include "server/http/text.h"
#include "server/rest/aside.h"

namespace tandem::rest {
namespace {

using http::Method;

static_assert(http::kBodySlack >= kJsonSlack);

// Below this an answer costs more to compress than to send.
constexpr std::size_t kMinCompressed = 1024;

// What takes about a millisecond on one core. More than that is done aside.
constexpr std::size_t kLargeJson = 256 * 1024;
constexpr std::size_t kLargePacked = 1024;                // Unpacks to a megabyte at worst.
constexpr std::size_t kLargeBody = std::size_t{1} << 20;  // BYTES are looked at element by element.
constexpr std::size_t kLargeAnswer = 64 * 1024;

// What the encoder needs once the request itself has gone into the queue.
struct Asked {
  std::vector<RequestedOutput> outputs;
  bool binary_output = false;
  std::string_view encoding;  // For the answer; empty: as it is.
  std::uint64_t number = 0;   // Of the request, for the answer; 0: none.
};

// Under which name GET /v2/trace/requests/… tells of the request.
void NameRequest(std::uint64_t number, http::Response& response) {
  if (number != 0) response.headers.emplace_back("Tandem-Request", RequestName(number));
}

http::Response Refusal(const Error& error, std::uint64_t number) {
  http::Response response = http::ErrorResponse(error);
  NameRequest(number, response);
  return response;
}

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
  return ParseSloHeader(head.Header("x-slo-ms"));
}

// How the body is packed, in our spelling: empty for not at all, nullopt for what we cannot unpack.
std::optional<std::string_view> ContentEncoding(const http::RequestHead& head) {
  const std::string_view text = head.Header("content-encoding");
  if (text.empty() || http::EqualsIgnoringCase(text, "identity")) return "";
  for (const std::string_view known : {"gzip", "deflate"}) {
    if (http::EqualsIgnoringCase(text, known)) return known;
  }
  return std::nullopt;
}

http::Response UnknownEncoding(const http::RequestHead& head) {
  http::Response refusal = http::ErrorResponse(415, Format("Content-Encoding '{}' is not known; known: gzip, deflate",
                                                           Excerpt(head.Header("content-encoding"))));
  refusal.headers.emplace_back("Accept-Encoding", "gzip, deflate");
  return refusal;
}

// Whether it takes long to make a request of the body.
bool IsLongToRead(const http::Request& http, bool packed) {
  const std::size_t size = http.body.size();
  if (packed) return size > kLargePacked;
  if (size <= kLargeJson) return false;
  const auto json = http::ParseDecimal(http.head.Header("inference-header-content-length"));
  return size > kLargeBody || json.value_or(size) > kLargeJson;
}

Result<InferRequest> ReadRequest(const Call& call, std::string_view encoding, std::size_t max_body) {
  const http::Request& http = call.exchange->request();
  TANDEM_ASSIGN(const auto json_length, JsonLength(http.head));
  // Taken, so that it goes as soon as nothing points into it.
  Bytes body = call.exchange->TakeBody();
  if (!encoding.empty()) {
    TANDEM_ASSIGN(body, Inflate(body.view, encoding, max_body, http.budget));
  }
  TANDEM_ASSIGN(InferRequest request, DecodeRestInfer(body, json_length, http::kBodySlack, http.budget));
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
  return Format("queue;dur={:.3f}, hold;dur=0, compute;dur={:.3f}", Ms(t.queue).count(),
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
  NameRequest(asked.number, response);
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

// Whether it takes long to write the answer: as text, or packed. Bytes that go out as they are cost nothing.
bool IsLongToWrite(const InferResponse& answer, const Asked& asked) {
  std::size_t written = 0;
  for (std::size_t i = 0; i < answer.outputs.size(); ++i) {
    const RequestedOutput* wanted = i < asked.outputs.size() ? &asked.outputs[i] : nullptr;
    if (wanted != nullptr && wanted->shared) continue;
    const bool binary = wanted != nullptr ? wanted->binary.value_or(asked.binary_output) : asked.binary_output;
    const std::size_t size = answer.outputs[i].data.size();
    if (!binary) written += size;
    if (!asked.encoding.empty()) written += 2 * size;  // To pack takes twice as long as to write numbers.
  }
  return written > kLargeAnswer;
}

void Answer(http::Exchange& exchange, const InferResponse& answer, const Asked& asked) {
  Result<http::Response> response = WriteResponse(answer, asked);
  exchange.Respond(response ? *std::move(response) : Refusal(response.error(), asked.number));
}

void Decode(ServerCore& core, const Call& call, std::string_view encoding, std::size_t max_body) {
  Result<InferRequest> request = ReadRequest(call, encoding, max_body);
  if (!request) return call.exchange->Respond(http::ErrorResponse(request.error()));
  request->number = core.inference.NextNumber();
  Asked asked{.outputs = request->outputs,
              .binary_output = request->binary_output,
              .encoding = AcceptedEncoding(call.exchange->request().head.Header("accept-encoding")),
              .number = request->number};
  core.inference.Infer(*std::move(request), [c = &core, exchange = call.exchange,
                                             asked = std::move(asked)](Result<InferResponse> answer) mutable {
    if (!answer) return exchange->Respond(Refusal(answer.error(), asked.number));
    const bool is_long = IsLongToWrite(*answer, asked);
    const bool is_small = OutputBytes(*answer) <= http::kCopyLimit;
    http::Exchange& front = *exchange;
    auto write = [&front, asked = std::move(asked), answer = *std::move(answer)] { Answer(front, answer, asked); };
    if (is_long) return RunAside(c->bulk, std::move(exchange), std::move(write));
    // With others under way the device's thread goes on to the next run, and the front end encodes. Else it has nothing
    // better to do, and to wake the front end would take longer.
    if (is_small && c->inference.in_flight() <= 1) return RunGuarded(front, write);
    front.Post([exchange = std::move(exchange), write = std::move(write)] { RunGuarded(*exchange, write); });
  });
}

void Infer(ServerCore& core, std::size_t max_body, const Call& call) {
  const http::Request& request = call.exchange->request();
  const auto encoding = ContentEncoding(request.head);
  if (!encoding) return call.exchange->Respond(UnknownEncoding(request.head));
  if (!IsLongToRead(request, !encoding->empty())) return Decode(core, call, *encoding, max_body);
  RunAside(core.bulk, call.exchange,
           [c = &core, call, encoding = *encoding, max_body] { Decode(*c, call, encoding, max_body); });
}

// What cannot be answered in time need not be sent: it would be refused when all of it is here.
std::optional<http::Response> RefuseUnreadInfer(ServerCore& core, const http::RequestHead& head,
                                                const Variables& variables) {
  const auto slo = HeaderSlo(head);
  if (!slo || !ContentEncoding(head)) return std::nullopt;  // Answered as what it is, once it is here.
  const auto refused = core.inference.RefuseUnread(variables[0], variables.size() > 1 ? variables[1] : "", *slo);
  if (!refused) return std::nullopt;
  return http::ErrorResponse(*refused);
}

}  // namespace

void AddInferRoutes(ServerCore& core, std::size_t max_body, std::vector<Route>& routes) {
  const Handler infer = [c = &core, max_body](const Call& call) { Infer(*c, max_body, call); };
  const RefuseUnread refuse = [c = &core](const http::RequestHead& head, const Variables& variables) {
    return RefuseUnreadInfer(*c, head, variables);
  };
  for (const char* path : {"/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer"}) {
    routes.push_back({Method::kPost, path, infer, max_body, true, refuse});
  }
}

}  // namespace tandem::rest
