#include "bench/peer_process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "bench/http_call.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;
using loadgen::Socket;
using Values = std::map<std::string, std::string, std::less<>>;

// A port that nobody has. Somebody could take it before the peer does; then the peer does not get ready and says why.
Result<int> FreePort() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.fd(), any, size) != 0 || ::getsockname(socket.fd(), any, &size) != 0) {
    return Fail(ErrorCode::kInternal, "no free port: {}", std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

// The interpreter that `./tandem bench peers install` has made; packaging/lib/peers.sh names it.
Result<std::string> PythonOf(const std::string& packages) {
  const char* const python = std::getenv(("TANDEM_PEER_" + packages).c_str());
  if (python != nullptr && access(python, X_OK) == 0) return std::string(python);
  return Fail(ErrorCode::kNotFound, "./tandem bench peers install {}", packages);
}

Result<Values> ValuesFor(const BenchContext& context, const PeerSpec& peer, const std::string& model) {
  Values values{{"threads", std::to_string(context.threads)},
                {"model", ModelName(model)},
                {"model_file", ""},
                {"python", ""},
                {"peers", context.peer_folder.string()},
                {"folder", context.folder.string()},
                {"bench", context.bench.string()}};
  if (!peer.packages.empty()) {
    TANDEM_ASSIGN(values["python"], PythonOf(peer.packages));
  }
  if (!model.empty()) {
    TANDEM_ASSIGN(const fs::path file, ModelFile(context, model));
    values["model_file"] = file.string();
  }
  for (const char* const name : {"port", "grpc_port"}) {
    TANDEM_ASSIGN(const int port, FreePort());
    values[name] = std::to_string(port);
  }
  return values;
}

Result<ChildCommand> CommandFor(const PeerSpec& peer, const Values& values, const fs::path& log) {
  ChildCommand command;
  command.log = log;
  for (const std::string& word : peer.command) {
    TANDEM_ASSIGN(std::string filled, FillPlaceholders(word, values));
    command.words.push_back(std::move(filled));
  }
  for (const auto& [name, text] : peer.environment) {
    TANDEM_ASSIGN(std::string filled, FillPlaceholders(text, values));
    command.environment.emplace_back(name, std::move(filled));
  }
  return command;
}

}  // namespace

Result<std::unique_ptr<PeerProcess>> PeerProcess::Start(const BenchContext& context, const PeerSpec& peer,
                                                        const std::string& model) {
  TANDEM_ASSIGN(const Values values, ValuesFor(context, peer, model));
  const fs::path log = context.work / Format("{}-{}.log", peer.name, values.at("port"));
  TANDEM_ASSIGN(const ChildCommand command, CommandFor(peer, values, log));
  TANDEM_ASSIGN(const std::string path, FillPlaceholders(peer.ready, values));
  const int port = std::stoi(values.at("port"));
  std::unique_ptr<PeerProcess> started(new PeerProcess(peer.name, log, port, std::stoi(values.at("grpc_port"))));
  auto process = ChildProcess::Start(command);
  if (!process) return Fail(process.error().code, "peer '{}': {}", peer.name, process.error().message);
  started->process_ = *std::move(process);
  const auto ready = [&] {
    const auto status = GetStatus(port, path);
    return status && *status == 200;
  };
  const Status waited = started->process_->WaitUntil(ready, [&] { return context.Stopped(); }, peer.start_timeout);
  if (waited) return started;
  if (waited.error().code == ErrorCode::kCancelled) return std::unexpected(waited.error());
  return Fail(waited.error().code, "peer '{}': {}: {}{}", peer.name, waited.error().message,
              Excerpt(started->process_->LastLine()), started->KeepLog());
}

std::string PeerProcess::KeepLog() const {
  std::error_code error;
  const fs::path kept = fs::temp_directory_path(error) / Format("tandem-bench-{}-{}.log", name_, pid());
  if (!error) fs::copy_file(log_, kept, fs::copy_options::overwrite_existing, error);
  return error ? std::string() : Format(" (its log is kept: {})", kept.string());
}

}  // namespace tandem::bench
