#include "profiler/flight_recorder.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakes/counted_allocations.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

MonotonicTime At(std::chrono::nanoseconds time) {
  return MonotonicTime(time);
}

template <typename Event>
std::size_t Count(const RecordRing& ring) {
  std::size_t count = 0;
  ring.ForEach([&](const FlightRecord& record) { count += As<Event>(record) ? 1 : 0; });
  return count;
}

TEST(FlightRecorder, TakesNoMemoryAfterItWasMade) {
  const auto recorder = std::make_unique<FlightRecorder>(1024);
  const std::string id(1000, 'i');
  const std::uint64_t before = fakes::allocations.load();
  for (int i = 0; i < 5000; ++i) {
    recorder->Write(RequestArrived{.at = At(1ms),
                                   .request = recorder->NextRequest(),
                                   .model = recorder->names().NumberOf("a model with a name that is not short"),
                                   .id = ClientId::Of(id)});
    recorder->Write(RequestAdmission{.at = At(2ms), .request = 1});
    recorder->Write(TrainerHeld{.at = At(3ms), .trainer = 1, .hold = 2});
    recorder->Write(TrainerStands{.at = At(3ms), .trainer = 1, .hold = 2, .trainers = {}});
    recorder->Write(TurnBegan{.at = At(4ms), .job = 1, .lane = 1});
  }
  EXPECT_EQ(fakes::allocations.load(), before);
  EXPECT_EQ(recorder->requests().capacity(), 1024u);
}

TEST(FlightRecorder, RequestsDoNotPushOutWhatIsAboutTraining) {
  const auto recorder = std::make_unique<FlightRecorder>(1024);
  recorder->Write(TrainerBegan{.at = At(1ms), .trainer = 3, .threads = 2, .trainers = {.running = 1}});
  for (int i = 0; i < 100'000; ++i) recorder->Write(RequestJoined{.at = At(2ms), .request = 1, .batch = 1});
  EXPECT_EQ(Count<TrainerBegan>(recorder->training()), 1u);
  EXPECT_EQ(Count<RequestJoined>(recorder->requests()), 1024u);
}

TEST(FlightRecorder, TurnsDoNotPushOutWhatWasDecided) {
  const auto recorder = std::make_unique<FlightRecorder>(1024);
  recorder->Write(TrainerStands{.at = At(1ms), .trainer = 3, .trainers = {.running = 1}});
  for (int i = 0; i < 100'000; ++i) {
    recorder->Write(TurnBegan{.at = At(2ms), .job = 1, .lane = 1});
    recorder->Write(TurnEnded{.at = At(3ms), .job = 1, .lane = 1, .began = At(2ms)});
  }
  EXPECT_EQ(Count<TrainerStands>(recorder->training()), 1u);
  EXPECT_EQ(recorder->turns().capacity(), FlightRecorder::kTurnRecords);
  EXPECT_EQ(Count<TurnBegan>(recorder->turns()), FlightRecorder::kTurnRecords / 2);
}

TEST(FlightRecorder, ThatIsOffKeepsNothing) {
  const auto recorder = std::make_unique<FlightRecorder>(0);
  EXPECT_FALSE(recorder->on());
  recorder->Write(RequestJoined{.at = At(2ms), .request = 1, .batch = 1});
  recorder->Write(TrainerHeld{.at = At(3ms), .trainer = 1, .hold = 2});
  recorder->Write(TurnBegan{.at = At(2ms), .job = 1, .lane = 1});
  EXPECT_EQ(recorder->requests().written() + recorder->training().written() + recorder->turns().written(), 0u);
}

}  // namespace
}  // namespace tandem
