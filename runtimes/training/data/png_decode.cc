#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <png.h>

#include "runtimes/training/data/data_root.h"
#include "runtimes/training/data/picture.h"

namespace tandem::training {
namespace {

// libpng's simple interface: it comes back by itself from its own longjmp.
class Reader {
 public:
  Reader() { image_.version = PNG_IMAGE_VERSION; }
  ~Reader() { png_image_free(&image_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] png_image& image() { return image_; }

 private:
  png_image image_{};
};

Picture WithoutAlpha(const Picture& picture) {
  const auto all = static_cast<std::size_t>(picture.channels);
  const std::size_t kept = all - 1;
  Picture opaque{.width = picture.width, .height = picture.height, .channels = static_cast<int>(kept), .pixels = {}};
  opaque.pixels.resize(picture.pixels.size() / all * kept);
  for (std::size_t i = 0; i < opaque.pixels.size(); ++i) opaque.pixels[i] = picture.pixels[i / kept * all + i % kept];
  return opaque;
}

constexpr std::size_t kSignature = 8;
// Length, kind and checksum, around the content.
constexpr std::size_t kAroundAChunk = 12;

// A chunk that says what the pixels are, and not what to think of them. Colour spaces are among the others: the library
// would compute other values by them.
bool IsNeeded(std::string_view kind) {
  return (kind[0] >= 'A' && kind[0] <= 'Z') || kind == "tRNS";
}

// The file without chunks that are not needed; nullopt when it has none of these. What is malformed stays as it is, for
// the library to complain about.
std::optional<std::string> OnlyPixels(std::string_view file) {
  std::optional<std::string> kept;
  std::size_t at = kSignature;
  while (file.size() - at >= kAroundAChunk) {
    std::uint64_t size = kAroundAChunk;
    for (int i = 0; i < 4; ++i) size += std::uint64_t{static_cast<unsigned char>(file[at + i])} << (24 - 8 * i);
    if (size > file.size() - at) break;
    const std::string_view chunk = file.substr(at, size);
    const bool needed = IsNeeded(chunk.substr(4, 4));
    if (!needed && !kept) {
      kept.emplace(file.substr(0, at));
      kept->reserve(file.size());
    }
    if (needed && kept) *kept += chunk;
    at += size;
  }
  if (kept) *kept += file.substr(at);
  return kept;
}

}  // namespace

Result<Picture> DecodePng(std::string_view file, int /*channels*/, std::int64_t max_pixels, const std::string& name) {
  const std::optional<std::string> kept = file.size() > kSignature ? OnlyPixels(file) : std::nullopt;
  if (kept) file = *kept;
  Reader reader;
  png_image& image = reader.image();
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    return Invalid("'{}' is a broken PNG file: {}", name, Shown(image.message));
  }
  // Alpha is read to be dropped: the library would mix the picture with a background else.
  image.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
  // Samples of 16 bits are scaled as those of 8 are, and not taken for light intensities.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const int channels = static_cast<int>(PNG_IMAGE_SAMPLE_CHANNELS(image.format));
  const bool alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  TANDEM_ASSIGN(Picture picture, EmptyPicture(image.width, image.height, channels, max_pixels, name));
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    return Invalid("'{}' is a broken PNG file: {}", name, Shown(image.message));
  }
  return alpha ? WithoutAlpha(picture) : std::move(picture);
}

}  // namespace tandem::training
