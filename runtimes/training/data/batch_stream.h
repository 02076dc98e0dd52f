#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "runtimes/training/data/example_source.h"
#include "runtimes/training/data/permutation.h"

namespace tandem::training {

// Which batch comes next. All that has to be kept to go on from there.
struct StreamPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;

  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

// Which of the examples: those that are learnt, or those held out to see how well.
enum class StreamPart { kTraining, kHeldOut };

struct StreamOptions {
  StreamPart part = StreamPart::kTraining;
  double held_out = 0;  // The share that is held out; in [0, 1).
  std::int64_t batch_size = 32;
  bool drop_last = false;   // Leaves out a last batch of an epoch that is not full.
  bool shuffle = true;      // In another order each epoch; else always in the same, that of the source if all is read.
  std::int64_t epochs = 0;  // Ends after so many; 0: never.
  std::uint64_t seed = 0;
  int prefetch = 2;  // Batches that are read ahead, by a thread of its own; 0: read when they are asked for.
  StreamPosition start;
};

// How many examples are held out: at least one of each part when both can have one.
[[nodiscard]] std::int64_t HeldOutCount(std::int64_t examples, double share);

// The batches of a source, epoch after epoch. Which examples are held out depends on the seed and their number; their
// order on the seed, the epoch and their number; so that a stream that starts at any position goes on exactly as
// another that came there. At most `prefetch` batches are held besides the one handed out. Used by one thread; the
// source outlives it, and may be read by other streams meanwhile.
class BatchStream {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BatchStream>> Open(const ExampleSource& source,
                                                                 const StreamOptions& options);
  // Waits for no more than one example that is just being read.
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // The next batch, or none after the last epoch. An error comes in the place of the batch it is about, and the stream
  // stays there.
  [[nodiscard]] Result<std::optional<Batch>> Next();

  // Of what Next() will give.
  [[nodiscard]] StreamPosition position() const { return position_; }
  [[nodiscard]] std::int64_t examples() const { return count_; }
  [[nodiscard]] std::int64_t batches_per_epoch() const { return batches_; }

 private:
  BatchStream(const ExampleSource& source, const StreamOptions& options, std::int64_t held_out, std::int64_t count,
              std::int64_t batches);

  [[nodiscard]] bool IsEnd(StreamPosition at) const { return options_.epochs > 0 && at.epoch >= options_.epochs; }
  [[nodiscard]] StreamPosition After(StreamPosition at) const;
  // The numbers of the examples of a batch.
  [[nodiscard]] std::vector<std::int64_t> ExamplesOf(StreamPosition at) const;
  [[nodiscard]] Result<Batch> ReadAt(StreamPosition at, const std::stop_token& stop) const;
  [[nodiscard]] Result<Batch> TakePrefetched();
  void Prefetch(StreamPosition at, const std::stop_token& stop);

  // Constant after construction.
  const ExampleSource& source_;
  const StreamOptions options_;
  const Permutation split_;
  const std::int64_t first_;    // The place in split_ where this part begins.
  const std::int64_t count_;    // Of examples in this part.
  const std::int64_t batches_;  // Of one epoch.

  // Caller's thread only.
  StreamPosition position_;
  std::optional<Error> failed_;

  Mutex mu_;
  CondVar changed_;
  std::deque<Result<Batch>> queue_ GUARDED_BY(mu_);

  std::jthread thread_;  // Last: it uses all the others.
};

}  // namespace tandem::training
