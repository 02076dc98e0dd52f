#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "runtimes/training/data/batch_buffer.h"
#include "runtimes/training/data/element_convert.h"
#include "runtimes/training/data/image_layout.h"
#include "runtimes/training/data/picture.h"
#include "runtimes/training/data/sources.h"

namespace tandem::training {
namespace {

constexpr std::size_t kMostClasses = 65'536;
constexpr std::size_t kMostFilesOfAClass = 20'000'000;

// The names of many files in one piece of memory, by class.
class FileList {
 public:
  void BeginClass() { class_starts_.push_back(size()); }
  void Add(const std::string& name) {
    starts_.push_back(names_.size());
    names_.append(name).push_back('\0');
  }

  [[nodiscard]] std::int64_t size() const { return std::ssize(starts_); }
  [[nodiscard]] const char* name(std::int64_t index) const { return &names_[starts_[static_cast<std::size_t>(index)]]; }
  [[nodiscard]] std::int64_t class_of(std::int64_t index) const {
    return std::ranges::upper_bound(class_starts_, index) - class_starts_.begin() - 1;
  }

 private:
  std::string names_;
  std::vector<std::uint64_t> starts_;
  std::vector<std::int64_t> class_starts_;
};

// Pictures in a folder for each class; they are decoded when they are read.
class ImageSource final : public ExampleSource {
 public:
  ImageSource(DataRoot root, std::string folder, FileList files, std::vector<std::string> class_names,
              ImageLayout layout, Column input, Column target, std::int64_t classes, const DataLimits& limits)
      : root_(std::move(root)),
        folder_(std::move(folder)),
        files_(std::move(files)),
        class_names_(std::move(class_names)),
        layout_(std::move(layout)),
        input_(std::move(input)),
        target_(std::move(target)),
        classes_(classes),
        limits_(limits) {}

  [[nodiscard]] std::int64_t size() const override { return files_.size(); }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return class_names_; }

  [[nodiscard]] Status Read(std::span<const std::int64_t> examples, Batch& into,
                            const std::stop_token& stop) const override {
    TANDEM_ASSIGN(BatchBuffer input, BatchBuffer::Make(input_, examples.size(), limits_));
    TANDEM_ASSIGN(BatchBuffer target, BatchBuffer::Make(target_, examples.size(), limits_));
    std::vector<float> values(input_.elements);
    for (std::size_t i = 0; i < examples.size(); ++i) {
      TANDEM_TRY(CheckGoesOn(stop));
      TANDEM_TRY(ReadPicture(examples[i], values));
      const auto* from = reinterpret_cast<const std::byte*>(values.data());
      if (ConvertElements(DataType::kFp32, from, input_.type, input.row(i), input_.elements) != input_.elements) {
        return Invalid("'{}' has a pixel that mean and deviation make no value of {}", PathOf(examples[i]),
                       DataTypeName(input_.type));
      }
      const std::int64_t label = files_.class_of(examples[i]);
      std::memcpy(target.row(i), &label, sizeof label);
    }
    into = Batch{.inputs = {std::move(input).Finish(input_)},
                 .target = std::move(target).Finish(target_),
                 .size = std::ssize(examples)};
    return {};
  }

 private:
  [[nodiscard]] std::string PathOf(std::int64_t example) const {
    const auto label = static_cast<std::size_t>(files_.class_of(example));
    return Format("{}/{}/{}", folder_, class_names_[label], files_.name(example));
  }

  [[nodiscard]] Status ReadPicture(std::int64_t example, std::span<float> values) const {
    const std::string path = PathOf(example);
    TANDEM_ASSIGN(const MappedFile file, root_.Map(path));
    TANDEM_ASSIGN(Picture picture, DecodePicture(file.bytes(), layout_.channels, limits_.image_pixels, Shown(path)));
    try {
      layout_.Store(Resize(std::move(picture), layout_.width, layout_.height), values);
    } catch (const std::bad_alloc&) {
      return Fail(ErrorCode::kTooLarge, "there is no memory to resize '{}'", Shown(path));
    }
    return {};
  }

  // Constant after construction.
  const DataRoot root_;
  const std::string folder_;
  const FileList files_;
  const std::vector<std::string> class_names_;
  const ImageLayout layout_;
  const Column input_;
  const Column target_;
  const std::int64_t classes_;
  const DataLimits limits_;
};

bool HasUsualEnding(const std::string& name) {
  std::string ending = name.substr(std::min(name.rfind('.'), name.size()));
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  constexpr std::array<std::string_view, 3> kEndings = {".jpg", ".jpeg", ".png"};
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

// What is in a file shows when it is decoded; one whose name does not promise a picture is looked at now, so that a
// stray text does not stop the job in the middle.
Status CheckOddFile(const DataRoot& root, const std::string& path) {
  TANDEM_ASSIGN(const MappedFile file, root.Map(path));
  if (FormatOf(file.bytes()) == PictureFormat::kOther) {
    return Invalid("'{}' is neither a JPEG nor a PNG file", Shown(path));
  }
  return {};
}

// Fills names and files from the folders of `folder`.
Status ListClasses(const DataRoot& root, const std::string& folder, std::vector<std::string>& names, FileList& files) {
  TANDEM_ASSIGN(const std::vector<std::string> entries, root.List(folder, kMostClasses));
  for (const std::string& entry : entries) {
    const std::string path = Format("{}/{}", folder, entry);
    TANDEM_ASSIGN(const bool is_folder, root.IsFolder(path));
    if (!is_folder) continue;
    names.push_back(entry);
    files.BeginClass();
    const std::int64_t before = files.size();
    TANDEM_ASSIGN(const std::vector<std::string> pictures, root.List(path, kMostFilesOfAClass));
    for (const std::string& picture : pictures) {
      if (!HasUsualEnding(picture)) TANDEM_TRY(CheckOddFile(root, Format("{}/{}", path, picture)));
      files.Add(picture);
    }
    if (files.size() == before) return Invalid("the folder of class '{}' has no pictures", Shown(path));
  }
  if (names.empty()) return Invalid("'{}' has no folder for a class", Shown(folder));
  return {};
}

}  // namespace

Result<std::unique_ptr<ExampleSource>> OpenImages(const DataSpec& spec, const DataNeeds& needs, const DataRoot& root,
                                                  const DataLimits& limits) {
  if (needs.inputs.size() != 1) return Invalid("pictures are for models with one input, not {}", needs.inputs.size());
  if (!needs.classes) return Invalid("pictures in folders have classes to learn, and no numbers: use cross-entropy");
  const DataNeeds::Input& input = needs.inputs[0];
  TANDEM_ASSIGN(ImageLayout layout, ImageLayout::Make(input, spec));
  TANDEM_ASSIGN(Column column, Column::Make(input.name, input.type, layout.shape, limits));
  TANDEM_ASSIGN(Column target, SingleTarget(needs, limits));
  std::vector<std::string> names;
  FileList files;
  TANDEM_TRY(ListClasses(root, spec.path, names, files));
  const std::int64_t found = std::ssize(names);
  if (needs.class_count > 0 && found > needs.class_count) {
    return Invalid("'{}' has folders for {} classes, and the model only {}", Shown(spec.path), found,
                   needs.class_count);
  }
  const std::int64_t classes = needs.class_count > 0 ? needs.class_count : found;
  return std::make_unique<ImageSource>(root, spec.path, std::move(files), std::move(names), std::move(layout),
                                       std::move(column), std::move(target), classes, limits);
}

}  // namespace tandem::training
