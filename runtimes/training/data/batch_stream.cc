#include "runtimes/training/data/batch_stream.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <system_error>
#include <utility>

#include "api/base/thread_name.h"
#include "runtimes/training/data/mapped_file.h"

namespace tandem::training {
namespace {

// What the seed is used for. Each epoch has a stream of its own, counted from the second.
constexpr std::uint64_t kSplitStream = 0x73706c6974;
constexpr std::uint64_t kFirstEpochStream = std::uint64_t{1} << 48;

constexpr int kMostPrefetch = 1024;

Status CheckOptions(const StreamOptions& options) {
  if (options.batch_size < 1) return Invalid("the batch size is {}; it must be at least 1", options.batch_size);
  if (!(options.held_out >= 0 && options.held_out < 1)) {
    return Invalid("the share held out is {}; it must be at least 0 and below 1", options.held_out);
  }
  if (options.prefetch < 0 || options.prefetch > kMostPrefetch) {
    return Invalid("{} batches are to be read ahead; 0 to {} can be", options.prefetch, kMostPrefetch);
  }
  if (options.epochs < 0 || options.start.epoch < 0 || options.start.batch < 0) {
    return Invalid("epochs and positions in them cannot be negative");
  }
  return {};
}

}  // namespace

std::int64_t HeldOutCount(std::int64_t examples, double share) {
  if (!(share > 0) || examples < 2) return 0;
  const auto count = static_cast<std::int64_t>(std::floor(static_cast<double>(examples) * share + 0.5));
  return std::clamp<std::int64_t>(count, 1, examples - 1);
}

Result<std::unique_ptr<BatchStream>> BatchStream::Open(const ExampleSource& source, const StreamOptions& options) {
  TANDEM_TRY(CheckOptions(options));
  const std::int64_t all = source.size();
  const std::int64_t held_out = HeldOutCount(all, options.held_out);
  const std::int64_t count = options.part == StreamPart::kTraining ? all - held_out : held_out;
  const bool short_one = !options.drop_last && count % options.batch_size != 0;
  const std::int64_t batches = count / options.batch_size + (short_one ? 1 : 0);
  if (batches == 0) {
    return Invalid("{} examples{} make no batch of {}", count,
                   options.part == StreamPart::kHeldOut ? " that are held out" : "", options.batch_size);
  }
  if (options.start.batch > batches) {
    return Invalid("the position is batch {}, and an epoch has {}: the data is not what it was", options.start.batch,
                   batches);
  }
  try {
    return std::unique_ptr<BatchStream>(new BatchStream(source, options, held_out, count, batches));
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kTooLarge, "out of memory or processes: there is no thread to read training data: {}",
                error.what());
  }
}

BatchStream::BatchStream(const ExampleSource& source, const StreamOptions& options, std::int64_t held_out,
                         std::int64_t count, std::int64_t batches)
    : source_(source),
      options_(options),
      split_(source.size(), options.seed, kSplitStream),
      first_(options.part == StreamPart::kTraining ? held_out : 0),
      count_(count),
      batches_(batches),
      position_(options.start) {
  if (position_.batch == batches_) position_ = {.epoch = position_.epoch + 1, .batch = 0};
  if (options_.prefetch > 0) {
    thread_ = std::jthread([this, at = position_](const std::stop_token& stop) { Prefetch(at, stop); });
  }
}

BatchStream::~BatchStream() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mu_);
    thread_.request_stop();
  }
  changed_.NotifyAll();
  thread_.join();
}

StreamPosition BatchStream::After(StreamPosition at) const {
  if (at.batch + 1 < batches_) return {.epoch = at.epoch, .batch = at.batch + 1};
  return {.epoch = at.epoch + 1, .batch = 0};
}

std::vector<std::int64_t> BatchStream::ExamplesOf(StreamPosition at) const {
  const std::int64_t begin = at.batch * options_.batch_size;
  const std::int64_t end = std::min(begin + options_.batch_size, count_);
  const Permutation order(count_, options_.seed, kFirstEpochStream + static_cast<std::uint64_t>(at.epoch));
  std::vector<std::int64_t> examples;
  examples.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t place = begin; place < end; ++place) {
    const std::int64_t of_part = options_.shuffle ? order.At(place) : place;
    // A source that is walked whole and in order is read as it lies on the disk.
    examples.push_back(count_ == source_.size() ? of_part : split_.At(first_ + of_part));
  }
  return examples;
}

Result<Batch> BatchStream::ReadAt(StreamPosition at, const std::stop_token& stop) const {
  try {
    Batch batch;
    const Status read = source_.Read(ExamplesOf(at), batch, stop);
    // First, because it explains whatever was wrong with what was read.
    TANDEM_TRY(CheckNoFileLost());
    TANDEM_TRY(read);
    return batch;
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "there is no memory to read batch {} of epoch {}", at.batch, at.epoch);
  }
}

void BatchStream::Prefetch(StreamPosition at, const std::stop_token& stop) {
  NameThread("training-data");
  const auto room = static_cast<std::size_t>(options_.prefetch);
  for (; !IsEnd(at); at = After(at)) {
    {
      const MutexLock lock(mu_);
      while (queue_.size() >= room && !stop.stop_requested()) changed_.Wait(mu_);
    }
    if (stop.stop_requested()) return;
    Result<Batch> batch = ReadAt(at, stop);
    const bool failed = !batch;
    {
      const MutexLock lock(mu_);
      queue_.push_back(std::move(batch));
    }
    changed_.NotifyAll();
    if (failed) return;
  }
}

Result<Batch> BatchStream::TakePrefetched() {
  Result<Batch> batch = Fail(ErrorCode::kInternal, "");
  {
    const MutexLock lock(mu_);
    while (queue_.empty()) changed_.Wait(mu_);
    batch = std::move(queue_.front());
    queue_.pop_front();
  }
  changed_.NotifyAll();
  return batch;
}

Result<std::optional<Batch>> BatchStream::Next() {
  if (failed_) return std::unexpected(*failed_);
  if (IsEnd(position_)) return std::nullopt;
  Result<Batch> batch = options_.prefetch > 0 ? TakePrefetched() : ReadAt(position_, {});
  if (!batch) {
    failed_ = batch.error();
    return std::unexpected(*failed_);
  }
  position_ = After(position_);
  return std::optional<Batch>(*std::move(batch));
}

}  // namespace tandem::training
