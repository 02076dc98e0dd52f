#include "bench/side_spec.h"

#include <algorithm>
#include <string_view>

#include "api/wire/json_text.h"

namespace tandem::bench {
namespace {

constexpr int kMostAnswerBytes = 1 << 30;
constexpr int kMostWorkers = 64;

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr Named<SideSource> kSources[] = {{"bare", SideSource::kBare},
                                          {"tandem", SideSource::kTandem},
                                          {"peer", SideSource::kPeer},
                                          {"loopback", SideSource::kLoopback},
                                          {"json_decoding", SideSource::kJsonDecoding}};
constexpr Named<SideProtocol> kProtocols[] = {{"rest_binary", SideProtocol::kRestBinary},
                                              {"rest_json", SideProtocol::kRestJson},
                                              {"grpc", SideProtocol::kGrpc},
                                              {"raw", SideProtocol::kRaw}};

template <typename T, std::size_t N>
Result<T> Choose(JsonFields& fields, const std::string& field, const Named<T> (&choices)[N]) {
  TANDEM_ASSIGN(const std::string text, fields.Text(field));
  std::string known;
  for (const Named<T>& choice : choices) {
    if (choice.name == text) return choice.value;
    known += (known.empty() ? "" : ", ") + std::string(choice.name);
  }
  return Invalid("{}: must be one of {}, not '{}'", fields.At(field), known, Excerpt(text));
}

Status ParseProtocol(JsonFields& fields, SideSpec& side) {
  TANDEM_ASSIGN(side.protocol, Choose(fields, "protocol", kProtocols));
  if (side.protocol != SideProtocol::kRaw) return {};
  if (side.source == SideSource::kTandem) {
    return Invalid("{}: tandem does not speak raw bytes", fields.At("protocol"));
  }
  TANDEM_ASSIGN(side.path, fields.Text("path"));
  if (!side.path.starts_with('/') || side.path.contains(' ')) {
    return Invalid("{}: must be a path such as /infer, not '{}'", fields.At("path"), Excerpt(side.path));
  }
  return {};
}

Status ParseSource(JsonFields& fields, const std::vector<PeerSpec>& peers, SideSpec& side) {
  switch (side.source) {
    case SideSource::kBare: {
      TANDEM_ASSIGN(side.spinning, fields.FlagOr("spinning", false));
      return {};
    }
    case SideSource::kTandem: {
      TANDEM_ASSIGN(side.workers, fields.WholeOr("workers", 0, kMostWorkers, 0));
      return ParseProtocol(fields, side);
    }
    case SideSource::kPeer: {
      TANDEM_ASSIGN(side.peer, fields.Text("peer"));
      TANDEM_TRY(FindPeer(peers, side.peer, fields.At("peer")));
      return ParseProtocol(fields, side);
    }
    case SideSource::kLoopback: {
      TANDEM_ASSIGN(const int bytes, fields.Whole("answer_bytes", 1, kMostAnswerBytes));
      side.answer_bytes = static_cast<std::size_t>(bytes);
      return {};
    }
    case SideSource::kJsonDecoding: return {};
  }
  return {};
}

}  // namespace

std::vector<std::string> SideSpec::series() const {
  if (source == SideSource::kJsonDecoding) return {name + ".p50", name + ".speed"};
  return {name + ".p50", name + ".p99", name + ".rate"};
}

Result<SideSpec> ParseSide(JsonFields fields, const std::vector<PeerSpec>& peers) {
  SideSpec side;
  TANDEM_ASSIGN(side.name, fields.Text("name"));
  if (side.name.contains('.')) return Invalid("{}: must not hold a point", fields.At("name"));
  TANDEM_ASSIGN(side.source, Choose(fields, "from", kSources));
  TANDEM_TRY(ParseSource(fields, peers, side));
  TANDEM_TRY(fields.Finish());
  return side;
}

}  // namespace tandem::bench
