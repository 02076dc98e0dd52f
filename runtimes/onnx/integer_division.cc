#include "runtimes/onnx/integer_division.h"

#include <atomic>
#include <mutex>
#include <string_view>

#include <signal.h>
#include <ucontext.h>

namespace tandem {
namespace {

constexpr std::size_t kMaxInstruction = 15;

// Of threads that have no watch: the shared pool's. Lock-free, because a signal handler counts.
std::atomic<std::uint64_t> shared_faults{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Of this thread. Volatile: the handler changes them between any two instructions.
constinit thread_local volatile std::uint64_t own_faults = 0;
constinit thread_local volatile int watches = 0;

void Count() {
  if (watches > 0) {
    own_faults = own_faults + 1;
  } else {
    shared_faults.fetch_add(1, std::memory_order_relaxed);
  }
}

bool IsLegacyPrefix(std::uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2E:
    case 0x36:
    case 0x3E:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xF0:
    case 0xF2:
    case 0xF3: return true;
    default: return false;
  }
}

#if defined(__x86_64__)

struct sigaction previous_action;

// Gives the division the result 0 and goes on behind it.
bool SkipDivision(ucontext_t& context) {
  auto& registers = context.uc_mcontext.gregs;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the system hands it over as a number.
  const auto* const code = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  const auto division = DecodeDivide({code, kMaxInstruction});
  if (!division) return false;
  constexpr greg_t kLow16 = 0xFFFF;
  switch (division->operand_bytes) {
    case 1: registers[REG_RAX] &= ~kLow16; break;  // Quotient in AL, remainder in AH.
    case 2:
      registers[REG_RAX] &= ~kLow16;
      registers[REG_RDX] &= ~kLow16;
      break;
    default:  // Writing 32 bits clears the upper half, too.
      registers[REG_RAX] = 0;
      registers[REG_RDX] = 0;
      break;
  }
  registers[REG_RIP] += static_cast<greg_t>(division->length);
  return true;
}

void HandleFault(int signal, siginfo_t* info, void* context) {
  if (info->si_code == FPE_INTDIV && SkipDivision(*static_cast<ucontext_t*>(context))) {
    Count();
    return;
  }
  // Not ours: as if this handler had never been. A fault comes again at once, a sent signal has to be sent again.
  sigaction(signal, &previous_action, nullptr);
  if (info->si_code <= 0) raise(signal);
}

#endif

}  // namespace

std::optional<DivideInstruction> DecodeDivide(std::span<const std::uint8_t> code) {
  std::size_t at = 0;
  const auto next = [&]() -> std::optional<std::uint8_t> {
    if (at >= code.size() || at >= kMaxInstruction) return std::nullopt;
    return code[at++];
  };
  bool short_operand = false;
  auto byte = next();
  while (byte && IsLegacyPrefix(*byte)) {
    short_operand |= *byte == 0x66;
    byte = next();
  }
  bool wide = false;
  if (byte && (*byte & 0xF0) == 0x40) {  // REX, which must stand last.
    wide = (*byte & 0x08) != 0;
    byte = next();
  }
  if (!byte || (*byte != 0xF6 && *byte != 0xF7)) return std::nullopt;
  const bool bytes = *byte == 0xF6;

  const auto modrm = next();
  if (!modrm) return std::nullopt;
  if (const int operation = (*modrm >> 3) & 7; operation != 6 && operation != 7) return std::nullopt;
  const int mode = *modrm >> 6;
  const int base = *modrm & 7;
  std::size_t displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
  if (mode != 3 && base == 4) {
    const auto scale_index_base = next();
    if (!scale_index_base) return std::nullopt;
    if (mode == 0 && (*scale_index_base & 7) == 5) displacement = 4;
  } else if (mode == 0 && base == 5) {
    displacement = 4;  // Relative to RIP.
  }
  at += displacement;
  if (at > code.size() || at > kMaxInstruction) return std::nullopt;
  return DivideInstruction{.length = at, .operand_bytes = bytes ? 1 : wide ? 8 : short_operand ? 2 : 4};
}

void InstallIntegerDivisionGuard() {
#if defined(__x86_64__)
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action{};
    action.sa_sigaction = &HandleFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    // The previous action must be known before the first fault can arrive.
    sigaction(SIGFPE, nullptr, &previous_action);
    sigaction(SIGFPE, &action, nullptr);
  });
#endif
}

IntegerDivisionWatch::IntegerDivisionWatch()
    : own_before_(own_faults), shared_before_(shared_faults.load(std::memory_order_relaxed)) {
  watches = watches + 1;
}

IntegerDivisionWatch::~IntegerDivisionWatch() {
  watches = watches - 1;
}

bool IntegerDivisionWatch::faulted() const {
  return own_faults != own_before_ || shared_faults.load(std::memory_order_relaxed) != shared_before_;
}

Status IntegerDivisionWatch::Check(std::string_view model) const {
  if (!faulted()) return {};
  return Invalid("model '{}': an integer was divided by zero, or the smallest one by -1", model);
}

}  // namespace tandem
