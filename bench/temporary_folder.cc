#include "bench/temporary_folder.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <stdlib.h>

namespace tandem::bench {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "tandem-bench-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return Fail(ErrorCode::kInternal, "no temporary folder can be made: {}", std::strerror(errno));
  }
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(name));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace tandem::bench
