#include "server/grpc/large_message.h"

#include <algorithm>

#include <google/protobuf/message.h>

#include "api/wire/grpc_structure.h"
#include "api/wire/infer_parameters.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {
namespace {

// Each input and output may be in shared memory, which takes three parameters, and have some of its own.
constexpr std::size_t kMaxParameters = 8 * kMaxTensors;
// Clients may be newer than we are, but not by so much.
constexpr std::size_t kMaxUnknownFields = 1024;

}  // namespace

Result<ByteBudget::Lease> TakeLargeMessage(ByteBudget& budget, grpc::ByteBuffer& bytes, std::size_t max_bytes,
                                           google::protobuf::Message& message) {
  // Small numbers and strings take more room than on the wire; twice the limit is enough for all but a hostile message.
  // It must also fit into the budget, which lets one in that is alone.
  const std::size_t max_held = std::min(2 * max_bytes, std::max(max_bytes, budget.limit()));
  const StructureLimits limits{.max_elements = kMaxTensors,
                               .max_map_entries = kMaxParameters,
                               .max_unknown_fields = kMaxUnknownFields,
                               .max_held_bytes = max_held};
  ByteBudget::Lease lease;
  TANDEM_TRY(TakeMessage(bytes, max_bytes, message, [&](auto& plain, std::size_t size) -> Status {
    TANDEM_ASSIGN(const std::size_t held, CheckStructure(plain, size, *message.GetDescriptor(), limits));
    TANDEM_ASSIGN(lease, budget.Take(held));
    return {};
  }));
  return lease;
}

}  // namespace tandem::grpc_front
