#include "runtimes/training/data/data_root.h"
#include "runtimes/training/data/example_source.h"
#include "runtimes/training/data/mapped_file.h"
#include "runtimes/training/data/sources.h"

namespace tandem::training {

namespace {

Result<std::unique_ptr<ExampleSource>> OpenFiles(const DataSpec& spec, const DataNeeds& needs, const DataRoot& root,
                                                 const DataLimits& limits) {
  switch (spec.kind) {
    case DataKind::kArrays: return OpenArrays(spec, needs, root, limits);
    case DataKind::kCsv: return OpenCsv(spec, needs, root, limits);
    case DataKind::kImages: return OpenImages(spec, needs, root, limits);
    case DataKind::kSynthetic: break;
  }
  return Fail(ErrorCode::kInternal, "data of a kind that is not known");
}

}  // namespace

Result<std::unique_ptr<ExampleSource>> OpenData(const DataSpec& spec, const DataNeeds& needs,
                                                const std::filesystem::path& data_root, std::uint64_t seed,
                                                const DataLimits& limits) {
  if (needs.inputs.empty()) return Invalid("the model has no input that data could be given to");
  if (spec.kind == DataKind::kSynthetic) return OpenSynthetic(spec, needs, seed, limits);
  TANDEM_ASSIGN(const DataRoot root, DataRoot::Open(data_root));
  auto source = OpenFiles(spec, needs, root, limits);
  // First, because it explains whatever was wrong with what was read.
  TANDEM_TRY(CheckNoFileLost());
  return source;
}

}  // namespace tandem::training
