#include "colocation/serving_sign.h"

#include <new>
#include <utility>

namespace tandem {
namespace {

// A line of the cache, so that nothing else is moved when it changes.
constexpr std::size_t kBytes = 64;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

Result<std::unique_ptr<ServingSign>> ServingSign::Create() {
  TANDEM_ASSIGN(auto pages, SharedPages::Create("tandem-sign", kBytes, SharedPages::Others::kRead));
  new (pages->data()) std::atomic<std::uint32_t>{};
  return std::unique_ptr<ServingSign>(new ServingSign(std::move(pages)));
}

Result<std::unique_ptr<ServingSign>> ServingSign::Attach(int fd) {
  TANDEM_ASSIGN(auto pages, SharedPages::Attach(fd, kBytes, SharedPages::Others::kRead));
  return std::unique_ptr<ServingSign>(new ServingSign(std::move(pages)));
}

}  // namespace tandem
