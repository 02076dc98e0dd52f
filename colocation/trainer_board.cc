#include "colocation/trainer_board.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "colocation/board_page.h"

namespace tandem {
namespace {

using std::chrono::nanoseconds;

// What a trainer tells is not believed beyond this: sums of it stay within their types.
constexpr std::uint64_t kMostNanoseconds = std::uint64_t{1} << 61;

nanoseconds Bounded(std::uint64_t time) {
  return nanoseconds(static_cast<std::int64_t>(std::min(time, kMostNanoseconds)));
}

// Printable ASCII and whole UTF-8 sequences would do; nobody needs more than the former to know a node by.
template <std::size_t Size>
std::string TextOf(const std::array<std::atomic<char>, Size>& bytes) {
  std::string text;
  for (const auto& byte : bytes) {
    const char c = byte.load(std::memory_order_relaxed);
    if (c == 0) break;
    text += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return text;
}

double Bounded(double flops) {
  return std::isfinite(flops) ? std::clamp(flops, 0.0, 1e30) : 0;
}

}  // namespace

Result<std::unique_ptr<TrainerBoard>> TrainerBoard::Create() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
  TANDEM_ASSIGN(auto pages, SharedPages::Create("tandem-board", sizeof(Page), SharedPages::Others::kWrite));
  Page* const page = new (pages->data()) Page{};
  page->under_way.store(kEveryModel, std::memory_order_relaxed);
  page->version.store(board::kVersion, std::memory_order_release);
  std::unique_ptr<TrainerBoard> board(new TrainerBoard(std::move(pages), page));
  board->SetTurn(Turn::kGo);
  return board;
}

Result<std::unique_ptr<TrainerBoard>> TrainerBoard::Attach(int fd) {
  TANDEM_ASSIGN(auto pages, SharedPages::Attach(fd, sizeof(Page), SharedPages::Others::kWrite));
  auto* const page = static_cast<Page*>(pages->data());
  const std::uint32_t version = page->version.load(std::memory_order_acquire);
  if (version != board::kVersion) {
    return Invalid("the board has version {}; this trainer knows {}", version, board::kVersion);
  }
  return std::unique_ptr<TrainerBoard>(new TrainerBoard(std::move(pages), page));
}

void TrainerBoard::Order(Permit permit, int threads) {
  given_ = board::NextOrders(given_, permit, threads);
  page_->orders.store(given_);  // In one order with what RunningGated() reads.
  Wake(page_->orders);
}

void TrainerBoard::Wake(std::atomic<std::uint32_t>& word) {
  // The word is shared between processes, so the private form of the call does not do.
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void TrainerBoard::SetTurn(Turn turn) {
  turn_ = board::NextTurn(turn_, turn);
  page_->turn.store(turn_, std::memory_order_release);
  Wake(page_->turn);
}

bool TrainerBoard::RestoreTurn() {
  if (page_->turn.load(std::memory_order_relaxed) == turn_) return false;
  page_->turn.store(turn_, std::memory_order_release);
  Wake(page_->turn);
  return true;
}

TurnSigns TrainerBoard::TurnTold() const {
  const auto at = [](const std::atomic<std::uint64_t>& word) {
    return MonotonicTime(Bounded(word.load(std::memory_order_relaxed)));
  };
  const std::uint32_t waits_by = page_->waits_by.load(std::memory_order_acquire);
  const std::uint32_t runs_by = page_->runs_by.load(std::memory_order_acquire);
  return {.waits = waits_by == turn_ && board::TurnOf(turn_) == Turn::kWait,
          .began = runs_by == turn_ && board::TurnOf(turn_) == Turn::kGo,
          .done = page_->done.load(std::memory_order_acquire) == board::kDone,
          .left_at = at(page_->left_at),
          .began_at = at(page_->began_at)};
}

void TrainerBoard::Set(Permit permit, MonotonicTime now, ModelSet under_way) {
  const bool others = permit == Permit::kLightOnly && under_way != under_way_;
  if (board::PermitOf(given_) != permit) {
    permits_given_.fetch_add(1, std::memory_order_relaxed);
    page_->ordered_at.store(nanoseconds(now.time_since_epoch()).count(), std::memory_order_relaxed);
  } else if (!others) {
    return;
  }
  if (others) {
    under_way_ = under_way;
    page_->under_way.store(under_way, std::memory_order_relaxed);  // Before the order: who sees that sees this.
  }
  Order(permit, board::ThreadsOf(given_));
}

void TrainerBoard::SetThreads(int threads) {
  threads = std::clamp(threads, 0, kMostThreads);
  if (board::ThreadsOf(given_) != threads) Order(board::PermitOf(given_), threads);
}

void TrainerBoard::SetGated(const GatedPlaces& ops) {
  for (const auto& [op, models] : gated_) page_->gated[op].store(0, std::memory_order_relaxed);
  gated_.clear();
  for (const auto& [op, models] : ops) {
    if (op >= kOps) continue;
    page_->gated[op].store(models, std::memory_order_relaxed);
    gated_.emplace(op, models);
  }
  // Who waits looks again.
  Order(board::PermitOf(given_), board::ThreadsOf(given_));
}

std::optional<OverwrittenBoard> TrainerBoard::Restore() {
  const OverwrittenBoard::Words given{.version = board::kVersion, .orders = given_};
  const OverwrittenBoard::Words found{.version = page_->version.load(std::memory_order_relaxed),
                                      .orders = page_->orders.load(std::memory_order_relaxed)};
  if (found == given) return std::nullopt;
  page_->version.store(given.version, std::memory_order_relaxed);
  page_->under_way.store(under_way_, std::memory_order_relaxed);
  page_->orders.store(given.orders);
  Wake(page_->orders);
  return OverwrittenBoard{.found = found, .given = given};
}

TrainerSigns TrainerBoard::Signs() const {
  return {.ops = board::Current::Of(page_->current.load(std::memory_order_relaxed)).begun,
          .held = page_->held.load(std::memory_order_relaxed) != 0,
          .gated = Bounded(page_->waited.load(std::memory_order_relaxed))};
}

std::optional<RunningOp> TrainerBoard::RunningGated() const {
  const auto current = board::Current::Of(page_->current.load());
  // One that waits has not begun.
  if (!current.place || page_->held.load(std::memory_order_relaxed) != 0) return {};
  const auto gated = gated_.find(*current.place);
  if (gated == gated_.end() || (gated->second & under_way_) == 0) return {};
  return RunningOp{.place = *current.place, .number = current.begun};
}

void TrainerBoard::SetLane(std::uint64_t bytes) {
  page_->lane.store(bytes, std::memory_order_release);
}

std::optional<std::uint64_t> TrainerBoard::LaneNeeded() const {
  const std::uint32_t asks = page_->lane_asks.load(std::memory_order_acquire);
  if (asks == page_->lane_answers.load(std::memory_order_relaxed)) return std::nullopt;
  return page_->lane_needed.load(std::memory_order_relaxed);
}

void TrainerBoard::AnswerLane(std::uint64_t bytes) {
  page_->lane.store(bytes, std::memory_order_relaxed);
  page_->lane_answers.store(page_->lane_asks.load(std::memory_order_relaxed), std::memory_order_release);
  Wake(page_->lane_answers);
}

std::vector<OpTotals> TrainerBoard::Totals() const {
  const std::size_t count = std::min<std::size_t>(page_->op_count.load(std::memory_order_acquire), kOps);
  std::vector<OpTotals> totals;
  totals.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const board::Op& op = page_->ops[i];
    totals.push_back({.op = {.kind = TextOf(op.kind), .name = TextOf(op.name)},
                      .work = {.flops = Bounded(op.flops.load(std::memory_order_relaxed)),
                               .bytes = op.bytes.load(std::memory_order_relaxed)},
                      .count = op.count.load(std::memory_order_relaxed),
                      .total = Bounded(op.total.load(std::memory_order_relaxed)),
                      .typical = Bounded(op.typical.load(std::memory_order_relaxed))});
  }
  return totals;
}

std::vector<OpRecord> TrainerBoard::Recent(MonotonicTime since) const {
  const std::uint64_t end = page_->records_written.load(std::memory_order_acquire);
  std::vector<OpRecord> recent;
  for (std::uint64_t number = end > kRecords ? end - kRecords : 0; number < end; ++number) {
    const board::Record& record = page_->records[number % kRecords];
    if (record.sequence.load(std::memory_order_acquire) != 2 * (number + 1)) continue;
    const OpRecord copy{
        .op = static_cast<std::uint32_t>(std::min<std::uint64_t>(record.op.load(std::memory_order_acquire), kOps - 1)),
        .began = MonotonicTime(Bounded(record.began.load(std::memory_order_acquire))),
        .took = Bounded(record.took.load(std::memory_order_acquire))};
    if (record.sequence.load(std::memory_order_relaxed) != 2 * (number + 1)) continue;
    if (copy.ended() >= since) recent.push_back(copy);
  }
  return recent;
}

AcknowledgementTimes TrainerBoard::Acknowledgements() const {
  AcknowledgementTimes times;
  for (std::size_t i = 0; i < times.counts.size(); ++i) {
    times.counts[i] = page_->acknowledged[i].load(std::memory_order_relaxed);
  }
  times.sum = Bounded(page_->acknowledged_sum.load(std::memory_order_relaxed));
  return times;
}

}  // namespace tandem
