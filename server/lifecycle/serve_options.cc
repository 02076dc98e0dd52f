#include "server/lifecycle/serve_options.h"

#include <cctype>
#include <filesystem>
#include <format>
#include <string_view>

#include <CLI/CLI.hpp>
#include <arpa/inet.h>

#include "api/base/format.h"
#include "colocation/job_policy.h"
#include "colocation/policy.h"
#include "memory/device_budget.h"
#include "profiler/flight_recorder.h"
#include "server/lifecycle/number_range.h"

namespace tandem {
namespace {

// "--http-port" → "TANDEM_HTTP_PORT"
std::string EnvironmentName(std::string_view flag) {
  std::string name = "TANDEM";
  for (const char c : flag.substr(1)) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

// An empty name would silently mean none, and with that no protection.
CLI::Validator Named() {
  return CLI::Validator(
      [](std::string& text) { return std::string(text.empty() ? "the name of a file is empty" : ""); }, "FILE");
}

CLI::Validator RecordCount() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::uint64_t kLeast = FlightRecorder::kLeastRecords;
        constexpr std::uint64_t kMost = FlightRecorder::kMostRecords;
        std::uint64_t count = 0;
        if (CLI::detail::lexical_cast(text, count) && (count == 0 || (count >= kLeast && count <= kMost))) {
          return std::string();
        }
        return Format("'{}' is neither 0 nor a number from {} to {}", text, kLeast, kMost);
      },
      "N");
}

CLI::Validator Share() {
  return CLI::Validator(
      [](std::string& text) {
        const auto share = ParseMemoryShare(text);
        return share ? std::string() : share.error().message;
      },
      "BYTES|N%");
}

std::vector<std::string> Names(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

template <typename T>
CLI::Option* Flag(CLI::App& app, const char* flag, T& value, const char* help, const char* group) {
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    // Triton spells switches with a value: --exit-on-error true.
    option = app.add_option(flag, value, help)->expected(0, 1)->default_str("true");
  } else {
    option = app.add_option(flag, value, help);
  }
  return option->envname(EnvironmentName(flag))->group(group);
}

bool IsLoopback(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return address == "::1";
}

Status CheckAddress(const char* flag, const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, address.c_str(), &v6) == 1) return {};
  return Invalid("{} '{}' is not an IP address", flag, address);
}

Status CheckExposure(const ServeOptions& o) {
  const bool guarded = !o.token_file.empty() || !o.tls_client_ca.empty();
  if (guarded || o.insecure) return {};
  const auto check = [](bool on, const char* flag, const std::string& address) -> Status {
    if (!on || IsLoopback(address)) return {};
    return Invalid(
        "{} {} would offer the server to a network without protection; give --token-file or "
        "--tls-client-ca, or --insecure true if that is meant",
        flag, address);
  };
  TANDEM_TRY(check(o.allow_http, "--http-address", o.http_address));
  TANDEM_TRY(check(o.allow_grpc, "--grpc-address", o.grpc_address));
  return check(o.allow_metrics, "--metrics-address", o.metrics_address);
}

// A pipe or a device may never come to its end, and most of these are read more than once.
Status CheckFile(const char* flag, const std::string& path) {
  if (path.empty()) return {};
  std::error_code ec;
  const auto type = std::filesystem::status(path, ec).type();
  if (type == std::filesystem::file_type::not_found) return Invalid("{} '{}' is not there", flag, path);
  // What may not be looked at is told by whoever opens it.
  if (type == std::filesystem::file_type::regular || type == std::filesystem::file_type::none) return {};
  return Invalid("{} '{}' is not a regular file", flag, path);
}

Status CheckFolder(const char* flag, const std::string& path) {
  std::error_code ec;
  const std::filesystem::directory_iterator readable(path, ec);
  if (ec) return Invalid("{} '{}' cannot be read as a folder: {}", flag, path, ec.message());
  return {};
}

}  // namespace

void AddServeFlags(CLI::App& app, ServeOptions& o) {
  const char* models = "Models";
  Flag(app, "--model-repository", o.model_repository, "Folder of models, in Triton's layout; may be repeated", models)
      ->required();
  Flag(app, "--model-control-mode", o.model_control_mode, "none, poll or explicit", models)
      ->check(CLI::IsMember({"none", "poll", "explicit"}))
      ->capture_default_str();
  Flag(app, "--load-model", o.load_model, "Model to load at start in explicit mode; '*' for all; may be repeated",
       models);
  Flag(app, "--repository-poll-secs", o.repository_poll_secs, "Seconds between looks at the repository in poll mode",
       models)
      ->check(Between(0.1, 86400.0))
      ->capture_default_str();
  Flag(app, "--exit-on-error", o.exit_on_error, "Stop when a model fails to load at start", models);
  Flag(app, "--strict-readiness", o.strict_readiness, "Ready only while every model is", models);

  const char* endpoints = "Endpoints";
  Flag(app, "--allow-http", o.allow_http, "Serve REST", endpoints);
  Flag(app, "--allow-grpc", o.allow_grpc, "Serve gRPC", endpoints);
  Flag(app, "--allow-metrics", o.allow_metrics, "Serve /metrics on its own port", endpoints);
  Flag(app, "--http-address", o.http_address, "Address for REST", endpoints)->capture_default_str();
  Flag(app, "--grpc-address", o.grpc_address, "Address for gRPC", endpoints)->capture_default_str();
  Flag(app, "--metrics-address", o.metrics_address, "Address for metrics", endpoints)->capture_default_str();
  for (auto [flag, port] :
       {std::pair{"--http-port", &o.http_port}, {"--grpc-port", &o.grpc_port}, {"--metrics-port", &o.metrics_port}}) {
    Flag(app, flag, *port, "Port; 0 takes a free one", endpoints)->check(CLI::Range(0, 65535))->capture_default_str();
  }
  Flag(app, "--ports-file", o.ports_file, "Write the ports in use to this file, as JSON", endpoints);

  const char* compute = "Compute";
  Flag(app, "--ort-library", o.ort_library, "ONNX Runtime library to load instead of the system's", compute);
  Flag(app, "--provider", o.provider, "Execution provider for models that name none: cpu, onednn, cuda, tensorrt",
       compute);
  Flag(app, "--threads", o.threads, "Threads of one run; 0: all usable cores", compute)->check(CLI::Range(0, 1024));
  Flag(app, "--spin", o.spin, "Let idle compute threads poll: faster, but they keep the cores busy", compute);
  Flag(app, "--pin-threads", o.pin_threads,
       "Where runs have a thread for each core, keep each to a core of its own; "
       "false: another program computes on these cores, too",
       compute)
      ->capture_default_str();
  Flag(app, "--workers", o.workers,
       "Runs under way at once, each on all threads; 0: as many as threads, each on one of them when several wait, "
       "else on "
       "all",
       compute)
      ->check(CLI::Range(0, 64));
  Flag(app, "--max-activation-bytes", o.max_activation_bytes,
       "Bound on the memory of all runs and of all weights; 0: what requests leave of what this process may have",
       compute);

  const char* training = "Training";
  Flag(app, "--allow-training", o.allow_training, "Take training jobs", training);
  Flag(app, "--state", o.state, "Folder for jobs, checkpoints and logs; by default in the user's state directory",
       training);
  Flag(app, "--data-root", o.data_root, "Folder that jobs may read data from; without it they can read none", training);
  Flag(app, "--colocation", o.colocation,
       "How training stands behind requests: tandem; for comparison none, nice, idle, pause, partition, time_slice, "
       "op_gate",
       training)
      ->check(CLI::IsMember(Names(ColocationPolicyNames())))
      ->capture_default_str();
  Flag(app, "--training-threads", o.training_threads,
       "Threads of a trainer; 0: all usable cores, or twice as many under a CPU limit", training)
      ->check(CLI::Range(0, 1024));
  Flag(app, "--max-training-jobs", o.max_training_jobs, "Jobs that are trained at once", training)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  Flag(app, "--job-policy", o.job_policy,
       "Whose iteration is next when several jobs are trained: pack (all side by side), fifo, srtf, fair, fair_memory, "
       "priority",
       training)
      ->check(CLI::IsMember(Names(JobPolicyNames())))
      ->capture_default_str();
  Flag(app, "--training-attempts", o.training_attempts, "Trainers that may fail before their job does", training)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  Flag(app, "--training-hang-secs", o.training_hang_secs, "A trainer that does nothing for so long is killed", training)
      ->check(Between(1.0, 86400.0))
      ->capture_default_str();
  Flag(app, "--training-cgroup", o.training_cgroup,
       "Control group in which trainers with a memory limit get one each; auto: if systemd delegated one; none",
       training);
  Flag(app, "--trainer", o.trainer, "The trainer program, if it is not beside this one", training);

  const char* limits = "Limits";
  Flag(app, "--memory", o.memory,
       "Memory for the server, its models and its trainers together: bytes, like 8GiB, or a part of what there is",
       limits)
      ->check(Share())
      ->capture_default_str();
  Flag(app, "--default-slo-ms", o.default_slo_ms, "SLO of requests and models that name none; 0: none", limits)
      ->check(Between(0.0, 86400000.0));
  Flag(app, "--admission", o.admission,
       "deadline: refuse at once what is not expected to be answered in time; queue: let wait whatever finds room",
       limits)
      ->check(CLI::IsMember({"deadline", "queue"}))
      ->capture_default_str();
  Flag(app, "--max-queue", o.max_queue, "Requests that may wait", limits)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000'000}))
      ->capture_default_str();
  Flag(app, "--max-request-bytes", o.max_request_bytes, "Largest request body, also after decompression", limits)
      ->check(CLI::Range(std::uint64_t{1024}, std::uint64_t{1} << 31))
      ->capture_default_str();
  Flag(app, "--max-header-bytes", o.max_header_bytes, "Largest HTTP header", limits)
      ->check(CLI::Range(std::uint64_t{1024}, std::uint64_t{1} << 20))
      ->capture_default_str();
  Flag(app, "--max-connections", o.max_connections, "HTTP connections at once", limits)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}))
      ->capture_default_str();
  Flag(app, "--header-timeout-secs", o.header_timeout_secs, "Time for a request's header to arrive", limits)
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  Flag(app, "--idle-timeout-secs", o.idle_timeout_secs, "Time an unused HTTP connection is kept", limits)
      ->check(Between(0.1, 86400.0))
      ->capture_default_str();
  Flag(app, "--io-threads", o.io_threads, "Threads for HTTP connections; 0: chosen by the number of cores", limits)
      ->check(CLI::Range(0, 64));
  Flag(app, "--busy-poll-us", o.busy_poll_us,
       "Microseconds that an idle thread looks for the next request before it sleeps; 0: none", compute)
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();

  const char* trust = kTrustGroup;
  Flag(app, "--tls-cert", o.tls_cert, "Certificate chain (PEM) for REST and gRPC", trust)->check(Named());
  Flag(app, "--tls-key", o.tls_key, "Private key (PEM) of --tls-cert", trust)->check(Named());
  Flag(app, "--tls-client-ca", o.tls_client_ca, "Only clients with a certificate of this CA (PEM)", trust)
      ->check(Named());
  Flag(app, "--token-file", o.token_file, "Only clients with one of these bearer tokens, one a line", trust)
      ->check(Named());
  Flag(app, "--insecure", o.insecure, "Allow other addresses than loopback without protection", trust);

  const char* operation = "Operation";
  Flag(app, "--log-level", o.log_level, "debug, info, warning, error or off", operation)->capture_default_str();
  Flag(app, "--log-format", o.log_format, "text or json", operation)->capture_default_str();
  Flag(app, "--drain-secs", o.drain_secs, "Time for requests under way to finish on SIGTERM", operation)
      ->check(Between(0.0, 3600.0))
      ->capture_default_str();
  Flag(app, "--trace-records", o.trace_records,
       "Records that are kept of requests and batches, 64 bytes each, to explain them; 0: none", operation)
      ->check(RecordCount())
      ->capture_default_str();
}

Status CheckServeOptions(const ServeOptions& o) {
  if (o.tls_cert.empty() != o.tls_key.empty()) return Invalid("--tls-cert and --tls-key go together");
  if (!o.tls_client_ca.empty() && o.tls_cert.empty()) return Invalid("--tls-client-ca needs --tls-cert and --tls-key");
  if (!o.load_model.empty() && o.model_control_mode != "explicit") {
    return Invalid("--load-model needs --model-control-mode explicit, not '{}'", o.model_control_mode);
  }
  if (!o.allow_http && !o.allow_grpc) return Invalid("--allow-http and --allow-grpc cannot both be false");
  TANDEM_TRY(CheckAddress("--http-address", o.http_address));
  TANDEM_TRY(CheckAddress("--grpc-address", o.grpc_address));
  TANDEM_TRY(CheckAddress("--metrics-address", o.metrics_address));
  return CheckExposure(o);
}

Status CheckServeFiles(const ServeOptions& o) {
  for (const std::string& folder : o.model_repository) TANDEM_TRY(CheckFolder("--model-repository", folder));
  if (!o.data_root.empty()) TANDEM_TRY(CheckFolder("--data-root", o.data_root));
  TANDEM_TRY(CheckFile("--tls-cert", o.tls_cert));
  TANDEM_TRY(CheckFile("--tls-key", o.tls_key));
  TANDEM_TRY(CheckFile("--tls-client-ca", o.tls_client_ca));
  TANDEM_TRY(CheckFile("--token-file", o.token_file));
  // A bare name is for the loader to find.
  if (!o.ort_library.contains('/')) return {};
  return CheckFile("--ort-library", o.ort_library);
}

}  // namespace tandem
