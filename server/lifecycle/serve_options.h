#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "profiler/flight_recorder.h"

namespace CLI {
class App;
}

namespace tandem {

// Everything that `tandem serve` can be told. Flags that Triton has keep Triton's names.
struct ServeOptions {
  std::vector<std::string> model_repository;
  std::string model_control_mode = "none";
  std::vector<std::string> load_model;
  double repository_poll_secs = 15;
  bool exit_on_error = false;
  bool strict_readiness = false;

  bool allow_http = true;
  bool allow_grpc = true;
  bool allow_metrics = true;
  std::string http_address = "127.0.0.1";
  std::string grpc_address = "127.0.0.1";
  std::string metrics_address = "127.0.0.1";
  int http_port = 8000;
  int grpc_port = 8001;
  int metrics_port = 8002;

  std::string ort_library;
  std::vector<std::string> provider;
  int threads = 0;  // 0: the cores this process may use.
  bool spin = false;
  bool pin_threads = true;  // Where runs may have a thread for each core.
  int workers = 0;          // 0: one for each thread, and a run has one thread or all of them.
  std::uint64_t max_activation_bytes = 0;

  bool allow_training = true;
  std::string state;      // Empty: the user's.
  std::string data_root;  // Empty: jobs can read no data.
  std::string colocation = "tandem";
  int training_threads = 0;  // 0: all usable cores; under a CPU limit up to twice as many.
  int max_training_jobs = 1;
  std::string job_policy = "pack";
  int training_attempts = 5;
  double training_hang_secs = 300;
  std::string training_cgroup = "auto";  // Or "none", or a folder.
  std::string trainer;                   // Empty: the program beside this one.

  std::string memory = "80%";  // As ParseMemoryShare has it.
  double default_slo_ms = 0;   // 0: none.
  std::string admission = "deadline";
  int io_threads = 0;      // 0: 1, or 2 from four cores on.
  int busy_poll_us = 100;  // How long an idle thread looks for a request before it sleeps.
  std::uint64_t max_queue = 8192;
  std::uint64_t max_request_bytes = std::uint64_t{256} << 20;
  std::uint64_t max_header_bytes = 32 << 10;
  std::uint64_t max_connections = 16384;
  double header_timeout_secs = 10;
  double idle_timeout_secs = 75;

  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;
  bool insecure = false;

  std::string log_level = "info";
  std::string log_format = "text";
  double drain_secs = 30;
  std::uint64_t trace_records = FlightRecorder::kDefaultRecords;  // 0: nothing is recorded.
  std::string ports_file;
};

// The group of the flags that protect the server, in the help.
inline constexpr const char* kTrustGroup = "Trust";

// Adds the flags (and their TANDEM_* environment variables) to a CLI11 command; `options` outlives the app.
void AddServeFlags(CLI::App& app, ServeOptions& options);

// What flags alone cannot check: combinations, ranges, and that nothing is offered to a network unprotected.
[[nodiscard]] Status CheckServeOptions(const ServeOptions& options);
// That the files and folders they name are such and can be opened.
[[nodiscard]] Status CheckServeFiles(const ServeOptions& options);

}  // namespace tandem
