#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <zlib.h>

#include "api/base/npz_directory.h"
#include "api/wire/npy.h"

namespace tandem {
namespace {

constexpr std::uint64_t kVersion = 20;     // Of the ZIP format.
constexpr std::uint64_t kFirstDay = 0x21;  // 1 January 1980: the same arrays give the same bytes.

// NumPy's name of a type; empty when it has none.
std::string_view Descriptor(DataType type) {
  switch (type) {
    case DataType::kBool: return "|b1";
    case DataType::kUint8: return "|u1";
    case DataType::kUint16: return "<u2";
    case DataType::kUint32: return "<u4";
    case DataType::kUint64: return "<u8";
    case DataType::kInt8: return "|i1";
    case DataType::kInt16: return "<i2";
    case DataType::kInt32: return "<i4";
    case DataType::kInt64: return "<i8";
    case DataType::kFp16: return "<f2";
    case DataType::kFp32: return "<f4";
    case DataType::kFp64: return "<f8";
    case DataType::kBf16:
    case DataType::kBytes: break;
  }
  return "";
}

// A number of so many bytes, little-endian.
std::string Number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string NpyFile(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dim : tensor.shape) shape += std::to_string(dim) + ",";
  std::string header =
      "{'descr': '" + std::string(Descriptor(tensor.type)) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data begins at a multiple of 64: after 10 bytes, the header, and the line end that closes it.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += Number(1, 2) + Number(header.size(), 2) + header;
  file.append(reinterpret_cast<const char*>(tensor.data.view.data()), tensor.data.size());
  return file;
}

// What the head of a file in the archive and its line in the list at the end have in common.
std::string CommonFields(std::string_view name, const std::string& file) {
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size());
  return Number(kVersion, 2) + Number(0, 2) + Number(kNpzStored, 2) + Number(0, 2) + Number(kFirstDay, 2) +
         Number(crc, 4) + Number(file.size(), 4) + Number(file.size(), 4) + Number(name.size(), 2) + Number(0, 2);
}

}  // namespace

Status WriteNpz(const std::filesystem::path& path, const std::vector<Tensor>& arrays) {
  std::string zip;
  std::string list;
  for (const Tensor& array : arrays) {
    if (Descriptor(array.type).empty()) {
      return Fail(ErrorCode::kUnsupported, "'{}' is {}, which NumPy does not have", array.name,
                  DataTypeName(array.type));
    }
    TANDEM_TRY(CheckTensorData(array));
    const std::string name = array.name + std::string(kNpySuffix);
    const std::string file = NpyFile(array);
    if (zip.size() + file.size() > std::numeric_limits<std::int32_t>::max()) {
      return Fail(ErrorCode::kTooLarge, "'{}' would be larger than 2 GB", path.string());
    }
    const std::string common = CommonFields(name, file);
    constexpr std::size_t kCommentDiskAndAttributes = 2 + 2 + 2 + 4;
    list.append("PK\x01\x02").append(Number(kVersion, 2)).append(common).append(kCommentDiskAndAttributes, '\0');
    list.append(Number(zip.size(), 4)).append(name);
    zip.append("PK\x03\x04").append(common).append(name).append(file);
  }
  const std::string end = "PK\x05\x06" + Number(0, 4) + Number(arrays.size(), 2) + Number(arrays.size(), 2) +
                          Number(list.size(), 4) + Number(zip.size(), 4) + Number(0, 2);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << zip << list << end;
  if (!out.flush()) return Fail(ErrorCode::kInternal, "'{}' cannot be written", path.string());
  return {};
}

}  // namespace tandem
