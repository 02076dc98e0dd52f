#include "runtimes/training/estimate/meta_ledger.h"

#include <algorithm>
#include <memory>

#include <c10/core/Allocator.h>

namespace tandem::training {
namespace {

// An allocator knows nothing of who asks.
thread_local MetaLedger* current = nullptr;

}  // namespace

// In place of the one that ATen has for the device, which does nothing. Never destroyed, as tensors may outlive main().
class MetaAllocator final : public c10::Allocator {
 public:
  static void Install() {
    static MetaAllocator* const installed = [] {
      auto* const allocator = new MetaAllocator();
      c10::SetAllocator(c10::DeviceType::Meta, allocator, /*priority=*/1);
      return allocator;
    }();
    static_cast<void>(installed);
  }

  c10::DataPtr allocate(std::size_t size) override {
    const c10::Device meta(c10::DeviceType::Meta);
    if (current == nullptr || size == 0) return {nullptr, nullptr, &Free, meta};
    auto grant = std::make_unique<Grant>(Grant{.counts = current->counts_, .bytes = RoundedBlock(size)});
    current->Add(grant->bytes);
    return {nullptr, grant.release(), &Free, meta};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  struct Grant {
    std::shared_ptr<MetaLedger::Counts> counts;
    std::uint64_t bytes;
  };

  static void Free(void* context) {
    const std::unique_ptr<Grant> grant(static_cast<Grant*>(context));
    if (grant) grant->counts->live -= grant->bytes;
  }
};

MetaLedger::MetaLedger() : counts_(std::make_shared<Counts>()) {
  MetaAllocator::Install();
  current = this;
}

MetaLedger::~MetaLedger() {
  current = nullptr;
}

void MetaLedger::Add(std::uint64_t bytes) {
  counts_->live += bytes;
  counts_->peak = std::max(counts_->peak, counts_->live);
}

void MetaLedger::NoteConvolution(const ConvolutionShape& shape) {
  if (current != nullptr) current->convolutions_.insert(shape);
}

}  // namespace tandem::training
