#include "runtimes/training/data/picture.h"

#include <new>
#include <utility>

namespace tandem::training {
namespace {

constexpr std::string_view kJpegStart = "\xff\xd8\xff";
constexpr std::string_view kPngStart("\x89PNG\r\n\x1a\n", 8);

// Weights of ITU-R 601 in 16 bits.
Picture ToGrey(const Picture& colours) {
  Picture grey{.width = colours.width, .height = colours.height, .channels = 1, .pixels = {}};
  grey.pixels.resize(colours.pixels.size() / 3);
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
    const std::uint8_t* pixel = &colours.pixels[i * 3];
    grey.pixels[i] =
        static_cast<std::uint8_t>((pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 32768U) >> 16);
  }
  return grey;
}

Picture ToColours(const Picture& grey) {
  Picture colours{.width = grey.width, .height = grey.height, .channels = 3, .pixels = {}};
  colours.pixels.resize(grey.pixels.size() * 3);
  for (std::size_t i = 0; i < colours.pixels.size(); ++i) colours.pixels[i] = grey.pixels[i / 3];
  return colours;
}

}  // namespace

PictureFormat FormatOf(std::string_view file) {
  if (file.starts_with(kJpegStart)) return PictureFormat::kJpeg;
  if (file.starts_with(kPngStart)) return PictureFormat::kPng;
  return PictureFormat::kOther;
}

Result<Picture> EmptyPicture(std::uint64_t width, std::uint64_t height, int channels, std::int64_t max_pixels,
                             const std::string& name) {
  if (width == 0 || height == 0) return Invalid("'{}' is a picture without pixels", name);
  const auto most = static_cast<std::uint64_t>(max_pixels);
  if (width > most || height > most / width) {
    return Fail(ErrorCode::kTooLarge, "'{}' is a picture of {}x{} pixels; at most {} are decoded", name, width, height,
                max_pixels);
  }
  Picture picture{
      .width = static_cast<int>(width), .height = static_cast<int>(height), .channels = channels, .pixels = {}};
  picture.pixels.resize(width * height * static_cast<std::uint64_t>(channels));
  return picture;
}

Result<Picture> DecodePicture(std::string_view file, int channels, std::int64_t max_pixels, const std::string& name) {
  try {
    Result<Picture> picture = Invalid("'{}' is neither a JPEG nor a PNG file", name);
    switch (FormatOf(file)) {
      case PictureFormat::kJpeg: picture = DecodeJpeg(file, channels, max_pixels, name); break;
      case PictureFormat::kPng: picture = DecodePng(file, channels, max_pixels, name); break;
      case PictureFormat::kOther: break;
    }
    if (!picture || picture->channels == channels) return picture;
    return channels == 1 ? ToGrey(*picture) : ToColours(*picture);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "there is no memory to decode '{}'", name);
  }
}

}  // namespace tandem::training
