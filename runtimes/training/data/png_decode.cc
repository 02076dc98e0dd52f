#include <string>
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

}  // namespace

Result<Picture> DecodePng(std::string_view file, int /*channels*/, std::int64_t max_pixels, const std::string& name) {
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
