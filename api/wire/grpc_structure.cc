#include "api/wire/grpc_structure.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace tandem {
namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;
using Wire = WireFormatLite::WireType;

// What an element takes beside its contents, generously: the object, the pointer to it and the allocator's share.
constexpr std::size_t kMessageBytes = 256;
constexpr std::size_t kStringBytes = 56;
constexpr std::size_t kUnknownBytes = 32;

// Field numbers above this are not counted, which is no loss: our messages have none.
constexpr int kCountedFields = 16;

std::size_t ElementBytes(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL: return sizeof(bool);
    case pb::FieldDescriptor::CPPTYPE_INT32:
    case pb::FieldDescriptor::CPPTYPE_UINT32:
    case pb::FieldDescriptor::CPPTYPE_ENUM:
    case pb::FieldDescriptor::CPPTYPE_FLOAT: return sizeof(std::int32_t);
    default: return sizeof(std::int64_t);
  }
}

Wire WireOf(const pb::FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
}

class Walk {
 public:
  Walk(pb::io::ZeroCopyInputStream& bytes, const pb::Descriptor& type, const StructureLimits& limits)
      : in_(&bytes), type_(type), limits_(limits) {}

  Result<std::size_t> Run(std::size_t size) {
    if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) return NotValid();
    // A part that claims to be longer than what it is in is refused below; for the whole this is its end.
    (void)in_.PushLimit(static_cast<int>(size));
    TANDEM_TRY(Message(type_, true));
    return held_;
  }

 private:
  [[nodiscard]] std::unexpected<Error> NotValid() const {
    return Invalid("the request is not a valid {} message", type_.full_name());
  }

  Status Message(const pb::Descriptor& type, bool top) {
    std::array<std::size_t, kCountedFields> counts{};
    while (const std::uint32_t tag = in_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const Wire wire = WireFormatLite::GetTagWireType(tag);
      const pb::FieldDescriptor* field = type.FindFieldByNumber(number);
      const bool packed = field != nullptr && field->is_packable() && wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (field == nullptr || (!packed && WireOf(*field) != wire)) {
        TANDEM_TRY(Unknown(wire, type));
      } else {
        if (field->is_repeated() && number < kCountedFields) {
          TANDEM_TRY(CheckCount(*field, ++counts[static_cast<std::size_t>(number)], top));
        }
        TANDEM_TRY(Known(*field, packed));
      }
      if (held_ > limits_.max_held_bytes) {
        return Invalid("the request would take more than {} bytes of memory: there is too much in '{}'",
                       limits_.max_held_bytes, field == nullptr ? type.name() : field->name());
      }
    }
    if (!in_.ConsumedEntireMessage()) return NotValid();
    return {};
  }

  Status CheckCount(const pb::FieldDescriptor& field, std::size_t count, bool top) {
    if (field.is_map()) {
      if (++map_entries_ <= limits_.max_map_entries) return {};
      return Invalid("the request has more than {} entries in '{}'", limits_.max_map_entries, field.name());
    }
    std::size_t limit = std::numeric_limits<std::size_t>::max();
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) limit = limits_.max_elements;
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING && top) limit = limits_.max_elements;
    if (count <= limit) return {};
    return Invalid("the request has more than {} entries in '{}'", limit, field.name());
  }

  // A part with its length before it; it ends where the part that it is in does, at the latest.
  bool ReadLength(int& length) { return in_.ReadVarintSizeAsInt(&length) && length <= in_.BytesUntilLimit(); }

  Status Known(const pb::FieldDescriptor& field, bool packed) {
    const Wire wire = WireOf(field);
    if (!packed && wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (field.is_repeated()) held_ += ElementBytes(field);
      return Skip(wire);
    }
    int length = 0;
    if (!ReadLength(length)) return NotValid();
    if (packed) return Packed(field, length);
    if (const pb::Descriptor* inner = field.message_type()) {
      held_ += kMessageBytes;
      const auto outer = in_.PushLimit(length);
      TANDEM_TRY(Message(*inner, false));
      in_.PopLimit(outer);
      return {};
    }
    held_ += kStringBytes + static_cast<std::size_t>(length);
    if (!in_.Skip(length)) return NotValid();
    return {};
  }

  Status Packed(const pb::FieldDescriptor& field, int length) {
    if (WireOf(field) != WireFormatLite::WIRETYPE_VARINT) {
      held_ += static_cast<std::size_t>(length);
      if (!in_.Skip(length)) return NotValid();
      return {};
    }
    // A byte each at least, but often more: the bytes that end one are counted. Parsing takes ten times as long.
    std::size_t elements = 0;
    while (length > 0) {
      const void* data = nullptr;
      int there = 0;
      if (!in_.GetDirectBufferPointer(&data, &there)) return NotValid();
      there = std::min(there, length);
      const auto* const bytes = static_cast<const std::uint8_t*>(data);
      elements += static_cast<std::size_t>(std::count_if(bytes, bytes + there, [](auto b) { return b < 0x80; }));
      (void)in_.Skip(there);
      length -= there;
    }
    held_ += elements * ElementBytes(field);
    return {};
  }

  // Kept by protobuf, although nobody asks for it.
  Status Unknown(Wire wire, const pb::Descriptor& type) {
    if (++unknown_ > limits_.max_unknown_fields) {
      return Invalid("the request has more than {} fields that are not known here, the last of them in {}",
                     limits_.max_unknown_fields, type.full_name());
    }
    held_ += kUnknownBytes;
    if (wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return Skip(wire);
    int length = 0;
    if (!ReadLength(length) || !in_.Skip(length)) return NotValid();
    held_ += kStringBytes + static_cast<std::size_t>(length);
    return {};
  }

  // Groups, which could be nested, are in no message of ours.
  Status Skip(Wire wire) {
    std::uint64_t number = 0;
    const bool skipped = (wire == WireFormatLite::WIRETYPE_VARINT && in_.ReadVarint64(&number)) ||
                         (wire == WireFormatLite::WIRETYPE_FIXED32 && in_.Skip(sizeof(std::uint32_t))) ||
                         (wire == WireFormatLite::WIRETYPE_FIXED64 && in_.Skip(sizeof(std::uint64_t)));
    if (!skipped) return NotValid();
    return {};
  }

  pb::io::CodedInputStream in_;
  const pb::Descriptor& type_;
  const StructureLimits& limits_;
  std::size_t held_ = 0;
  std::size_t map_entries_ = 0;
  std::size_t unknown_ = 0;
};

}  // namespace

Result<std::size_t> CheckStructure(pb::io::ZeroCopyInputStream& bytes, std::size_t size, const pb::Descriptor& type,
                                   const StructureLimits& limits) {
  return Walk(bytes, type, limits).Run(size);
}

}  // namespace tandem
