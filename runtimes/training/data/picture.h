#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::training {

// Pixels of 8 bits for each channel, row by row without gaps: grey (1) or red, green, blue (3).
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;
};

enum class PictureFormat { kJpeg, kPng, kOther };

// By how the file begins.
[[nodiscard]] PictureFormat FormatOf(std::string_view file);

// Decodes a JPEG or PNG file to 1 or 3 channels, as PIL does. Colours become grey by ITU-R 601 luma; an alpha channel
// is dropped; of 16 bits the upper 8 count; colour spaces, gamma and orientation are passed over. A file that is
// corrupt or cut off, or has more than `max_pixels`, is an error; `name` stands for it. Thread-safe.
[[nodiscard]] Result<Picture> DecodePicture(std::string_view file, int channels, std::int64_t max_pixels,
                                            const std::string& name);

// The two that DecodePicture chooses from; they give the channels that are cheapest to get, and the alpha is dropped.
[[nodiscard]] Result<Picture> DecodeJpeg(std::string_view file, int channels, std::int64_t max_pixels,
                                         const std::string& name);
[[nodiscard]] Result<Picture> DecodePng(std::string_view file, int channels, std::int64_t max_pixels,
                                        const std::string& name);

// Checks the size that a file claims, and makes room for it.
[[nodiscard]] Result<Picture> EmptyPicture(std::uint64_t width, std::uint64_t height, int channels,
                                           std::int64_t max_pixels, const std::string& name);

// Another size, by a triangle as wide as a pixel of the smaller picture: bilinear when it grows, the mean over what
// falls together when it shrinks. In fixed point, 8 bits after each direction, after the model of PIL's
// BILINEAR.
[[nodiscard]] Picture Resize(Picture picture, int width, int height);

}  // namespace tandem::training
