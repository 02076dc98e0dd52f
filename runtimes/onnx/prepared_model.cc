#include "runtimes/onnx/prepared_model.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/format.h"
#include "runtimes/onnx/packed_weights.h"
#include "runtimes/onnx/slim_graph.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Smaller weights are in memory, packed or not: pages of a file are no smaller.
constexpr std::uint64_t kLeastMapped = std::uint64_t{64} << 10;

Result<std::shared_ptr<const MappedFile>> MapFile(const fs::path& path, std::uint64_t size) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Fail(ErrorCode::kUnavailable, "'{}' cannot be opened", path.string());
  auto mapped = MappedFile::Map(descriptor, static_cast<std::size_t>(size));
  ::close(descriptor);
  return mapped;
}

// What sessions are made of, in the place of what ONNX Runtime has written.
Result<std::shared_ptr<const MappedFile>> KeepInFile(const fs::path& graph, const GraphInputs& inputs) {
  TANDEM_ASSIGN(const std::string slim, ReadSlimGraph(graph, inputs));
  std::ofstream file(graph, std::ios::binary | std::ios::trunc);
  file.write(slim.data(), static_cast<std::streamsize>(slim.size()));
  file.close();
  if (!file) return Fail(ErrorCode::kUnavailable, "'{}' cannot be written", graph.string());
  return MapFile(graph, slim.size());
}

// The file with the weights, and how it is read.
class WeightsFile {
 public:
  static Result<WeightsFile> Open(const fs::path& path) {
    WeightsFile out;
    TANDEM_ASSIGN(WireFile file, WireFile::Open(path));
    out.file_ = std::make_unique<WireFile>(std::move(file));
    TANDEM_ASSIGN(out.mapped_, MapFile(path, out.file_->size()));
    return out;
  }

  Result<std::shared_ptr<const SharedWeight>> Read(const ExternalTensor& tensor, bool packed) const {
    if (tensor.offset > file_->size() || tensor.byte_size > file_->size() - tensor.offset) {
      return Fail(ErrorCode::kInternal, "the weights of a rewritten model end at {}", file_->size());
    }
    if (packed && tensor.byte_size >= kLeastMapped && tensor.offset % kTensorAlignment == 0) {
      return std::make_shared<const SharedWeight>(mapped_, mapped_->bytes().subspan(tensor.offset, tensor.byte_size));
    }
    AlignedBuffer buffer(tensor.byte_size);
    TANDEM_TRY(file_->ReadAt(tensor.offset, buffer.span()));
    return std::make_shared<const SharedWeight>(std::move(buffer));
  }

 private:
  std::unique_ptr<WireFile> file_;
  std::shared_ptr<const MappedFile> mapped_;
};

Status CheckShareable(const OnnxFileInfo& graph) {
  for (const ExternalTensor& tensor : graph.external) {
    if (tensor.place == TensorPlace::kAttribute || tensor.name.empty() || tensor.byte_size == 0 ||
        graph.repeated_names.contains(tensor.name) || tensor.location != RewrittenFiles::kWeightsName) {
      return Fail(ErrorCode::kUnsupported, "a weight has no name of its own");
    }
  }
  return {};
}

}  // namespace

Result<GraphInputs> InputsOf(const OrtApi& api, const OrtSession* session) {
  OrtAllocator* allocator = nullptr;  // Owned by the library.
  TANDEM_TRY(CheckOrt(api, api.GetAllocatorWithDefaultOptions(&allocator), "names of inputs"));
  std::size_t count = 0;
  TANDEM_TRY(CheckOrt(api, api.SessionGetInputCount(session, &count), "names of inputs"));
  GraphInputs names;
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    TANDEM_TRY(CheckOrt(api, api.SessionGetInputName(session, i, allocator, &name), "names of inputs"));
    names.insert(name);
    TANDEM_TRY(CheckOrt(api, api.AllocatorFree(allocator, name), "names of inputs"));
  }
  return names;
}

Result<std::shared_ptr<const PreparedModel>> PreparedModel::Take(const OrtEnvironment& environment,
                                                                 const RewrittenFiles& files, GraphInputs inputs) {
  const OrtApi& api = environment.api();
  TANDEM_ASSIGN(const OnnxFileInfo graph, InspectOnnxFile(files.graph()));
  TANDEM_TRY(CheckShareable(graph));
  TANDEM_ASSIGN(const std::unordered_set<std::string> packed, FindPackedWeights(files.graph()));
  TANDEM_ASSIGN(auto slim, KeepInFile(files.graph(), inputs));
  TANDEM_ASSIGN(WeightClaim claim, environment.ClaimWeights(graph.tensor_bytes));
  OrtPrepackedWeightsContainer* raw = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreatePrepackedWeightsContainer(&raw), "container of packed weights"));
  std::shared_ptr<PreparedModel> model(
      new PreparedModel(api, std::move(claim), {raw, {api.ReleasePrepackedWeightsContainer}}));
  model->graph_ = std::move(slim);
  model->inputs_ = std::move(inputs);
  std::vector<std::shared_ptr<const SharedWeight>> weights;
  if (!graph.external.empty()) {
    TANDEM_ASSIGN(const WeightsFile file, WeightsFile::Open(files.weights()));
    for (const ExternalTensor& tensor : graph.external) {
      TANDEM_ASSIGN(auto weight, file.Read(tensor, packed.contains(tensor.name)));
      weights.push_back(std::move(weight));
    }
  }
  TANDEM_TRY(model->AddWeights(graph.external, environment.weight_pool(), std::move(weights)));
  std::error_code ignored;
  fs::remove(files.graph(), ignored);
  fs::remove(files.weights(), ignored);
  return model;
}

Status PreparedModel::AddWeights(const std::vector<ExternalTensor>& tensors, WeightPool& pool,
                                 std::vector<std::shared_ptr<const SharedWeight>> weights) {
  OrtMemoryInfo* raw_info = nullptr;
  TANDEM_TRY(CheckOrt(api_, api_.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &raw_info), "memory kind"));
  const OrtPtr<OrtMemoryInfo> info(raw_info, {api_.ReleaseMemoryInfo});
  weights = pool.Share(std::move(weights));
  weights_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ExternalTensor& tensor = tensors[i];
    const std::span<const std::byte> bytes = weights[i]->bytes();
    OrtValue* raw = nullptr;
    // The C API has no const tensor; ONNX Runtime does not write to initializers.
    TANDEM_TRY(CheckOrt(api_,
                        api_.CreateTensorWithDataAsOrtValue(
                            raw_info, const_cast<std::byte*>(bytes.data()), bytes.size(), tensor.shape.data(),
                            tensor.shape.size(), static_cast<ONNXTensorElementDataType>(tensor.element_type), &raw),
                        "weight"));
    weights_.push_back({tensor.name, std::move(weights[i]), {raw, OrtRelease<OrtValue>{api_.ReleaseValue}}});
    weight_bytes_ += bytes.size();
  }
  DropPages();
  return {};
}

void PreparedModel::DropPages() const {
  MappedFile::DropPages(graph_->bytes());
  for (const Weight& weight : weights_) weight.shared->DropPages();
}

Result<OrtPtr<OrtSession>> PreparedModel::MakeSession(OrtEnv* environment, OrtSessionOptions* options) const {
  for (const Weight& weight : weights_) {
    TANDEM_TRY(CheckOrt(api_, api_.AddInitializer(options, weight.name.c_str(), weight.value.get()), "weight"));
  }
  OrtSession* raw = nullptr;
  OrtStatus* const status = api_.CreateSessionFromArrayWithPrepackedWeightsContainer(
      environment, graph_->bytes().data(), graph_->bytes().size(), options, packed_.get(), &raw);
  OrtPtr<OrtSession> session(raw, {api_.ReleaseSession});
  DropPages();  // Those that were read to be packed.
  if (const auto failure = TakeFailure(api_, status)) return std::unexpected(LoadError(*failure, "its rewritten form"));
  TANDEM_ASSIGN(const GraphInputs inputs, InputsOf(api_, session.get()));
  if (inputs != inputs_) return Fail(ErrorCode::kUnsupported, "its rewritten form has other inputs");
  return session;
}

bool PreparedModel::Equals(const PreparedModel& other) const {
  const bool same = std::ranges::equal(graph_->bytes(), other.graph_->bytes()) &&
                    std::ranges::equal(weights_, other.weights_, [](const Weight& a, const Weight& b) {
                      return a.name == b.name && a.shared == b.shared;
                    });
  DropPages();
  other.DropPages();
  return same;
}

std::shared_ptr<const PreparedModel> PreparedModels::Find(const std::string& key) const {
  const MutexLock lock(mu_);
  const auto found = models_.find(key);
  return found == models_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const PreparedModel> PreparedModels::Keep(const std::string& key,
                                                          std::shared_ptr<const PreparedModel> model) {
  // Declared before the lock: it may be the last to let go of one.
  std::vector<std::shared_ptr<const PreparedModel>> others;
  const MutexLock lock(mu_);
  std::erase_if(models_, [](const auto& known) { return known.second.expired(); });
  for (const auto& [other_key, known] : models_) {
    auto other = known.lock();
    if (other == nullptr) continue;
    others.push_back(other);
    if (!other->Equals(*model)) continue;
    model = std::move(other);
    break;
  }
  models_[key] = model;
  return model;
}

}  // namespace tandem
