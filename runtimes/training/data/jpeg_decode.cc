#include <csetjmp>
#include <cstdio>
#include <string>
#include <utility>

// The order matters: which messages there are, and so their numbers, depends on how the library was built.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "runtimes/training/data/data_root.h"
#include "runtimes/training/data/picture.h"

namespace tandem::training {
namespace {

// A progressive file may have any number of scans, each of which costs a pass over the whole picture.
constexpr int kMostScans = 500;

// libjpeg and what it needs to report errors. It leaves through longjmp, which must not pass by anything that has a
// destructor: between setjmp and the library stand only plain values.
struct Decoder {
  jpeg_error_mgr errors;  // First: the library hands back its address.
  jpeg_decompress_struct info;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void Leave(j_common_ptr info) {
  auto* decoder = reinterpret_cast<Decoder*>(info->err);
  decoder->errors.format_message(info, decoder->message);
  std::longjmp(decoder->leave, 1);
}

// The library would go on with grey where data is missing or makes no sense; that must not be learnt. Oddities that
// leave the pixels as they are pass.
void Warn(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_MUST_RESYNC: Leave(info);
    default: return;
  }
}

void CountScans(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMostScans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  Leave(info);
}

void Silent(j_common_ptr) {}

// Reads the head of the file and chooses the colours. False with a message.
bool Begin(Decoder& decoder, const unsigned char* file, std::size_t size, int channels) {
  if (setjmp(decoder.leave) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.progress.progress_monitor = CountScans;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, file, size);
  jpeg_read_header(&decoder.info, TRUE);
  switch (decoder.info.jpeg_color_space) {
    case JCS_GRAYSCALE: decoder.info.out_color_space = JCS_GRAYSCALE; break;
    // The luma is already there.
    case JCS_YCbCr: decoder.info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB; break;
    case JCS_CMYK:
    case JCS_YCCK: decoder.info.out_color_space = JCS_CMYK; break;
    default: decoder.info.out_color_space = JCS_RGB; break;
  }
  jpeg_calc_output_dimensions(&decoder.info);
  return true;
}

// Decodes all rows to `pixels`. False with a message.
bool ReadRows(Decoder& decoder, unsigned char* pixels) {
  if (setjmp(decoder.leave) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  const std::size_t row_bytes =
      std::size_t{decoder.info.output_width} * static_cast<std::size_t>(decoder.info.output_components);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW row = pixels + decoder.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

// Adobe writes these colours inverted, and nobody else writes them.
Picture FromInk(const Picture& ink, bool inverted) {
  Picture colours{.width = ink.width, .height = ink.height, .channels = 3, .pixels = {}};
  colours.pixels.resize(ink.pixels.size() / 4 * 3);
  const int flip = inverted ? 0 : 255;
  for (std::size_t i = 0; i < colours.pixels.size(); ++i) {
    const std::uint8_t* pixel = &ink.pixels[i / 3 * 4];
    const int light = (pixel[i % 3] ^ flip) * (pixel[3] ^ flip);
    colours.pixels[i] = static_cast<std::uint8_t>((light + 127) / 255);
  }
  return colours;
}

}  // namespace

Result<Picture> DecodeJpeg(std::string_view file, int channels, std::int64_t max_pixels, const std::string& name) {
  Decoder decoder{};
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = Leave;
  decoder.errors.emit_message = Warn;
  decoder.errors.output_message = Silent;
  struct Destroy {
    jpeg_decompress_struct& info;
    ~Destroy() { jpeg_destroy_decompress(&info); }
  } destroy{decoder.info};

  if (!Begin(decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size(), channels)) {
    return Invalid("'{}' is a broken JPEG file: {}", name, Shown(decoder.message));
  }
  TANDEM_ASSIGN(Picture picture, EmptyPicture(decoder.info.output_width, decoder.info.output_height,
                                              decoder.info.output_components, max_pixels, name));
  if (!ReadRows(decoder, picture.pixels.data())) {
    return Invalid("'{}' is a broken JPEG file: {}", name, Shown(decoder.message));
  }
  if (picture.channels == 4) return FromInk(picture, decoder.info.saw_Adobe_marker != 0);
  return picture;
}

}  // namespace tandem::training
