#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "api/base/result.h"

namespace tandem {

// Integer divisions that the processor refuses: by zero, or the smallest number by -1. ONNX leaves their result open,
// ONNX Runtime leaves them to the hardware, and x86-64 answers with SIGFPE, which would end the process at the word of
// any client of a model that divides. docs/decisions/0007 says why this is done with a signal handler.

// Takes SIGFPE of integer divisions for this process: such a division gives 0, and the watches below hear of it. Every
// other SIGFPE is left to whoever had the signal before. Called once per process, by OrtEnvironment; calling it again
// does nothing. On processors that do not trap (aarch64 gives 0 by itself) it does nothing at all.
void InstallIntegerDivisionGuard();

// Tells whether a division was refused while it lived. Made by the thread that calls ONNX Runtime, around the call.
// Precise for what that thread computes itself. Faults on the threads of the shared pool cannot be told apart: they
// count for every watch that lives at that moment.
class IntegerDivisionWatch {
 public:
  IntegerDivisionWatch();
  ~IntegerDivisionWatch();
  IntegerDivisionWatch(const IntegerDivisionWatch&) = delete;
  IntegerDivisionWatch& operator=(const IntegerDivisionWatch&) = delete;

  [[nodiscard]] bool faulted() const;
  // kInvalidArgument, naming the model, when a division was refused.
  [[nodiscard]] Status Check(std::string_view model) const;

 private:
  const std::uint64_t own_before_;
  const std::uint64_t shared_before_;
};

// An integer division of x86-64 in machine code.
struct DivideInstruction {
  std::size_t length = 0;
  int operand_bytes = 0;  // 1, 2, 4 or 8: which parts of RAX and RDX get quotient and remainder.

  friend bool operator==(const DivideInstruction&, const DivideInstruction&) = default;
};

// The DIV or IDIV that `code` begins with; nothing when it begins with anything else. Reads no byte beyond the
// instruction. Safe in a signal handler.
[[nodiscard]] std::optional<DivideInstruction> DecodeDivide(std::span<const std::uint8_t> code);

}  // namespace tandem
