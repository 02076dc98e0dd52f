#include "tests/runtimes/training/data/data_files.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "api/base/format.h"

namespace tandem::training {
namespace {

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string Deflated(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// What stands alike before an entry and in the list of them.
void AppendHead(std::string& out, bool packed, std::uint32_t crc) {
  Append<std::uint16_t>(out, 45);
  Append<std::uint16_t>(out, 0);
  Append<std::uint16_t>(out, packed ? 8 : 0);
  Append<std::uint32_t>(out, 0x00210000);
  Append<std::uint32_t>(out, crc);
}

std::string PngOf(png_uint_32 format, int width, int height, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr);
  std::string out(size, '\0');
  if (png_image_write_to_memory(&image, out.data(), &size, 0, pixels, 0, nullptr) == 0) throw std::runtime_error("png");
  out.resize(size);
  return out;
}

}  // namespace

DataFolder::DataFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tandem-data-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = std::filesystem::canonical(pattern);
}

void DataFolder::Write(const std::string& file, std::string_view bytes) const {
  const std::filesystem::path full = path_ / file;
  std::filesystem::create_directories(full.parent_path());
  std::ofstream(full, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string Npy(std::string_view descr, std::string_view shape, std::string_view data, std::string_view fortran_order) {
  std::string header = Format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran_order, shape);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  Append(out, static_cast<std::uint16_t>(header.size()));
  return out + header + std::string(data);
}

std::string Npz(const std::vector<NpzMember>& members, bool packed, bool wide) {
  std::string out, list;
  for (const NpzMember& member : members) {
    const std::string data = packed ? Deflated(member.bytes) : member.bytes;
    const auto crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(member.bytes.data()), member.bytes.size()));
    const std::uint64_t size = member.claimed_size != 0 ? member.claimed_size : member.bytes.size();
    const std::uint64_t offset = out.size();
    const auto name_size = static_cast<std::uint16_t>(member.name.size());
    out += "PK\x03\x04";
    AppendHead(out, packed, crc);
    Append(out, static_cast<std::uint32_t>(data.size()));
    Append(out, static_cast<std::uint32_t>(size));
    Append(out, name_size);
    Append<std::uint16_t>(out, 0);
    out += member.name + data;

    list += "PK\x01\x02";
    Append<std::uint16_t>(list, 45);
    AppendHead(list, packed, crc);
    Append(list, wide ? 0xffffffffU : static_cast<std::uint32_t>(data.size()));
    Append(list, wide ? 0xffffffffU : static_cast<std::uint32_t>(size));
    Append(list, name_size);
    Append<std::uint16_t>(list, wide ? 28 : 0);
    list.append(8, '\0');
    Append<std::uint16_t>(list, 0);
    Append(list, wide ? 0xffffffffU : static_cast<std::uint32_t>(offset));
    list += member.name;
    if (!wide) continue;
    Append<std::uint16_t>(list, 1);
    Append<std::uint16_t>(list, 24);
    Append(list, size);
    Append<std::uint64_t>(list, data.size());
    Append(list, offset);
  }
  const std::uint64_t list_at = out.size();
  out += list;
  if (wide) {
    const std::uint64_t wide_end_at = out.size();
    out += "PK\x06\x06";
    Append<std::uint64_t>(out, 44);
    out.append(12, '\0');
    Append<std::uint64_t>(out, members.size());
    Append<std::uint64_t>(out, members.size());
    Append<std::uint64_t>(out, list.size());
    Append(out, list_at);
    out += "PK\x06\x07";
    Append<std::uint32_t>(out, 0);
    Append(out, wide_end_at);
    Append<std::uint32_t>(out, 1);
  }
  out += "PK\x05\x06";
  Append<std::uint32_t>(out, 0);
  Append(out, static_cast<std::uint16_t>(members.size()));
  Append(out, static_cast<std::uint16_t>(members.size()));
  Append(out, static_cast<std::uint32_t>(list.size()));
  Append(out, wide ? 0xffffffffU : static_cast<std::uint32_t>(list_at));
  Append<std::uint16_t>(out, 0);
  return out;
}

std::string Png(const Picture& picture) {
  return PngOf(picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB, picture.width, picture.height,
               picture.pixels.data());
}

std::string PngWithAlpha(const Picture& opaque, std::uint8_t alpha) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < opaque.pixels.size(); ++i) {
    pixels.push_back(opaque.pixels[i]);
    if (i % 3 == 2) pixels.push_back(alpha);
  }
  return PngOf(PNG_FORMAT_RGBA, opaque.width, opaque.height, pixels.data());
}

std::string Jpeg(const Picture& picture, int quality, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : picture.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.channels);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPLE*>(&picture.pixels[info.next_scanline * row_bytes]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

Picture Plain(int width, int height, std::initializer_list<std::uint8_t> colour) {
  Picture picture{.width = width, .height = height, .channels = static_cast<int>(colour.size()), .pixels = {}};
  for (int i = 0; i < width * height; ++i) picture.pixels.insert(picture.pixels.end(), colour);
  return picture;
}

}  // namespace tandem::training
