#include "bench/server_process.h"

#include <ctime>
#include <fstream>

#include <json/json.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "bench/http_call.h"

namespace tandem::bench {

Result<std::unique_ptr<ServerProcess>> ServerProcess::Start(const ServerCommand& command,
                                                            std::chrono::seconds patience) {
  if (access(command.program.c_str(), X_OK) != 0) {
    return Fail(ErrorCode::kNotFound, "there is no program '{}'; build the target tandem", command.program.string());
  }
  TANDEM_ASSIGN(auto folder, TemporaryFolder::Make());
  ChildCommand child;
  child.words = {command.program.string(),
                 "serve",
                 "--model-repository",
                 command.repository.string(),
                 "--http-port",
                 "0",
                 "--grpc-port",
                 "0",
                 "--metrics-port",
                 "0",
                 "--ports-file",
                 (folder->path() / "ports.json").string(),
                 "--state",
                 (folder->path() / "state").string(),
                 "--log-level",
                 "warning"};
  child.words.insert(child.words.end(), command.flags.begin(), command.flags.end());
  child.log = folder->path() / "log";
  child.groups = command.groups;

  const MonotonicTime before = RealClock::Instance().Now();
  TANDEM_ASSIGN(auto process, ChildProcess::Start(child));
  std::unique_ptr<ServerProcess> server(new ServerProcess(std::move(folder), std::move(process)));
  const Status ready = server->process_->WaitUntil([&] { return server->Ready(); }, {}, patience);
  if (!ready) {
    return Fail(ready.error().code, "tandem serve: {}: {}", ready.error().message, server->process_->LogTail());
  }
  server->start_to_ready_ = RealClock::Instance().Now() - before;
  return server;
}

Result<double> ServerProcess::CpuSeconds() const {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process_->pid(), &clock) != 0 || clock_gettime(clock, &used) != 0) {
    return Fail(ErrorCode::kInternal, "the CPU time of the server cannot be read");
  }
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

bool ServerProcess::Ready() {
  if (http_port_ == 0 && !ReadPorts()) return false;
  const auto status = GetStatus(http_port_, "/v2/health/ready");
  return status && *status == 200;
}

bool ServerProcess::ReadPorts() {
  std::ifstream stream(folder_->path() / "ports.json");
  Json::Value json;
  std::string problem;
  // The file may be there before its content is.
  if (!stream || !Json::parseFromStream(Json::CharReaderBuilder(), stream, &json, &problem)) return false;
  if (!json.isObject() || !json["http"].isInt() || !json["grpc"].isInt()) return false;
  http_port_ = json["http"].asInt();
  grpc_port_ = json["grpc"].asInt();
  return http_port_ != 0;
}

}  // namespace tandem::bench
