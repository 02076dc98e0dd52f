#include "api/wire/grpc_structure.h"

#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "api/wire/proto/inference.pb.h"

namespace tandem {
namespace {

using inference::ModelInferRequest;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr StructureLimits kLimits{
    .max_elements = 10, .max_map_entries = 20, .max_unknown_fields = 5, .max_held_bytes = 100'000};

// In pieces of `piece` bytes, as messages come from the network.
Result<std::size_t> Check(const std::string& bytes, const StructureLimits& limits = kLimits, int piece = -1) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), piece);
  return CheckStructure(stream, bytes.size(), *ModelInferRequest::descriptor(), limits);
}

std::string Repeat(const std::string& bytes, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += bytes;
  return all;
}

// A part with its length before it.
std::string Part(int field, const std::string& bytes) {
  std::string part(1, static_cast<char>(field << 3 | 2));
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) part += static_cast<char>((size & 0x7F) | 0x80);
  part += static_cast<char>(size);
  return part + bytes;
}

std::string Refusal(const std::string& bytes, const StructureLimits& limits = kLimits) {
  const auto checked = Check(bytes, limits);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  return checked.error().message;
}

ModelInferRequest Ordinary() {
  ModelInferRequest request;
  request.set_model_name("model");
  (*request.mutable_parameters())["priority"].set_int64_param(3);
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.add_shape(1);
  input.add_shape(-1);
  (*input.mutable_parameters())["shared_memory_region"].set_string_param("region");
  for (int i = 0; i < 100; ++i) {
    input.mutable_contents()->add_fp32_contents(1);
    input.mutable_contents()->add_int64_contents(-i);
    input.mutable_contents()->add_bool_contents(true);
  }
  input.mutable_contents()->add_bytes_contents("text");
  request.add_outputs()->set_name("y");
  request.add_raw_input_contents(std::string(5'000, 'x'));
  return request;
}

TEST(GrpcStructure, AnOrdinaryMessagePassesInWhateverPieces) {
  const std::string bytes = Ordinary().SerializeAsString();
  for (const int piece : {1, 2, 3, 7, 64, 100'000}) {
    const auto held = Check(bytes, kLimits, piece);
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ(held, Check(bytes));
    EXPECT_GT(*held, 6'000U);
    EXPECT_LT(*held, 12'000U);
  }
  EXPECT_EQ(Check(""), 0U);
}

TEST(GrpcStructure, TooManyOfAKindAreNamed) {
  for (const auto& [element, name] : {std::pair{"\x2a", "'inputs'"}, {"\x32", "'outputs'"}, {"\x3a", "'raw_input"}}) {
    const std::string empty = std::string(element) + '\0';
    EXPECT_EQ(Refusal(Repeat(empty, 10)), "");
    EXPECT_THAT(Refusal(Repeat(empty, 11)), AllOf(HasSubstr(name), HasSubstr("10")));
  }
}

TEST(GrpcStructure, EntriesOfAllMapsAreCountedTogether) {
  const std::string entry = std::string("\x22") + '\0';
  EXPECT_EQ(Refusal(Repeat(entry, 20)), "");
  EXPECT_THAT(Refusal(Repeat(entry, 21)), AllOf(HasSubstr("'parameters'"), HasSubstr("20")));
  EXPECT_EQ(Refusal(Repeat(Part(5, Repeat(entry, 2)), 10)), "");
  EXPECT_THAT(Refusal(Repeat(Part(5, Repeat(entry, 3)), 10)), HasSubstr("'parameters'"));
}

TEST(GrpcStructure, ElementsThatWouldTakeTooMuchMemoryAreRefused) {
  const auto contents = [](const std::string& bytes) { return Part(5, Part(5, bytes)); };
  EXPECT_EQ(Refusal(contents(Repeat(std::string("\x42") + '\0', 1'000))), "");
  EXPECT_THAT(Refusal(contents(Repeat(std::string("\x42") + '\0', 3'000))), HasSubstr("'bytes_contents'"));
  EXPECT_EQ(Refusal(contents(Part(3, std::string(10'000, 1)))), "");
  EXPECT_THAT(Refusal(contents(Part(3, std::string(15'000, 1)))), HasSubstr("'int64_contents'"));
  EXPECT_THAT(Refusal(contents(Repeat("\x18\x01", 15'000))), HasSubstr("'int64_contents'"));
  EXPECT_THAT(Refusal(Part(5, Part(3, std::string(15'000, 1)))), HasSubstr("'shape'"));
  // The same numbers in more bytes each.
  EXPECT_EQ(Refusal(contents(Part(3, Repeat("\xff\x01", 7'500)))), "");
}

TEST(GrpcStructure, UnknownFieldsAreCountedWhereverTheyAre) {
  const std::string unknown = "\x78\x01";                     // Number 15, a varint.
  const std::string mistyped = std::string("\x28") + '\x01';  // `inputs` as a varint.
  EXPECT_EQ(Refusal(Repeat(unknown, 5)), "");
  EXPECT_THAT(Refusal(Repeat(unknown, 6)), AllOf(HasSubstr("not known"), HasSubstr("5")));
  EXPECT_THAT(Refusal(Repeat(mistyped, 6)), HasSubstr("not known"));
  EXPECT_THAT(Refusal(Repeat(Part(5, unknown), 6)), HasSubstr("not known"));
  EXPECT_THAT(Refusal(Repeat(Part(4, Part(2, unknown)), 6)), HasSubstr("not known"));
}

TEST(GrpcStructure, WhatCannotBeAMessageIsRefused) {
  for (const std::string& bytes :
       {std::string("\x0a\x05"), std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\xff\xff\xff\xff\xff\xff"),
        std::string(1, '\0'), std::string("\x0b\x0c"), std::string(100, '\x0b'), std::string("\x0e"),
        // A part that reaches beyond the one that it is in, where the rest would not be counted.
        std::string("\x2a\x02\x2a\x64") + Repeat(std::string("\x42") + '\0', 50)}) {
    EXPECT_THAT(Refusal(bytes), HasSubstr("not a valid inference.ModelInferRequest")) << bytes;
  }
}

}  // namespace
}  // namespace tandem
