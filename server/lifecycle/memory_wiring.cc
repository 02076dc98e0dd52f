#include "server/lifecycle/memory_wiring.h"

#include <chrono>
#include <string>
#include <utility>

#include "api/base/byte_text.h"
#include "server/lifecycle/part_settings.h"
#include "server/log/log.h"

namespace tandem {
namespace {

// For what nobody tells of: most limits are heard of at once.
constexpr std::chrono::seconds kBetweenLooks{10};

void TellBudget(const DeviceBudget& budget) {
  LogInfo("memory budget", {{"bytes", std::to_string(budget.bytes)}, {"from", BudgetWords(budget)}});
}

}  // namespace

Result<MemoryParts> SetUpMemory(ServeOptions& options) {
  auto share = ParseMemoryShare(options.memory);
  if (!share) return Invalid("--memory: {}", share.error().message);
  const MemoryThere there = ReadMemoryThere();
  const DeviceBudget budget = BudgetOf(*share, there);
  TellBudget(budget);
  MemoryParts parts{.budgets = BudgetsFor(options, budget.bytes)};
  options.max_activation_bytes = parts.budgets.arena;
  options.max_request_bytes = parts.budgets.max_request;
  TANDEM_ASSIGN(parts.account, MemoryAccount::Create(budget, Workers(options)));
  const MemoryBudgets& own = parts.budgets;
  const std::uint64_t front_ends =
      own.rest_bodies + own.rest_answers + own.grpc_buffers + own.grpc_requests + own.grpc_answers;
  const auto count = [&](const char* name, std::uint64_t bytes) {
    parts.own.push_back(std::make_unique<CountedMemory>(parts.account, MemoryKind::kServer, name,
                                                        SessionNeed{.persistent = bytes, .stays = true}));
  };
  count("front ends", front_ends);
  count("reserve", own.reserve);
  parts.watch = std::make_unique<LimitWatch>("/", there, kBetweenLooks,
                                             [share = *share, account = parts.account](const MemoryThere& now) {
                                               const DeviceBudget changed = BudgetOf(share, now);
                                               account->SetBudget(changed);
                                               TellBudget(changed);
                                             });
  return parts;
}

repository::MemoryCounter CountVersions(std::shared_ptr<MemoryAccount> account) {
  return [account = std::move(account)](const repository::VersionMemory& version) -> std::shared_ptr<void> {
    std::string name = Format("{} version {}", version.model, version.version);
    const SessionNeed need{.persistent = version.Persistent(), .ephemeral = version.run, .stays = true};
    auto counted = std::make_shared<CountedMemory>(account, MemoryKind::kModel, name, need);
    if (version.measured) counted->Measure(*version.measured);
    if (version.runs != nullptr) {
      version.runs->Listen(version.run, version.largest_input,
                           [need, weak = std::weak_ptr(counted)](std::uint64_t expected) {
                             SessionNeed now = need;
                             now.ephemeral = expected;
                             if (const auto still = weak.lock()) still->Recount(now);
                           });
    }
    if (const std::uint64_t overhang = account->Map().overhang; overhang > 0) {
      LogWarning("a model has memory that the budget does not: no job is begun until others leave",
                 {{"model", std::move(name)}, {"too_much", ByteText(overhang)}});
    }
    return counted;
  };
}

}  // namespace tandem
