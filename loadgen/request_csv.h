#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "loadgen/run.h"

namespace tandem::loadgen {

// A file with one line for every request of a run, in the order in which they came to an outcome:
//
//   model,scheduled_s,sent_s,first_byte_s,done_s,outcome,status,latency_ms,bytes,warmup,batch,reason
//
// Times count from the start of the run; one that was never reached is empty. Written as the run goes on, a block at a
// time. A disk that is full ends the file, not the run: Close() says so. Used by one thread, the generator's.
class RequestCsv {
 public:
  // `models` are the names of those in the spec. A file that is there is emptied.
  [[nodiscard]] static Result<std::unique_ptr<RequestCsv>> Create(const std::filesystem::path& file,
                                                                  std::vector<std::string> models);
  ~RequestCsv();
  RequestCsv(const RequestCsv&) = delete;
  RequestCsv& operator=(const RequestCsv&) = delete;

  void Add(const JudgedRequest& request);
  // Writes what is left. The error of the first write that failed.
  [[nodiscard]] Status Close();

 private:
  RequestCsv(std::filesystem::path file, int fd, std::vector<std::string> models);
  void Flush();

  const std::filesystem::path file_;
  const std::vector<std::string> models_;
  int fd_;
  int error_ = 0;  // Of the first write that failed.
  std::string text_;
};

[[nodiscard]] std::string_view OutcomeName(Outcome outcome);

}  // namespace tandem::loadgen
