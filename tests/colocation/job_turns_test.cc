// Turns among real processes.

#include "colocation/job_turns.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <random>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "colocation/board_gate.h"
#include "colocation/board_page.h"
#include "tests/fakes/eventually.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// What the trainers of a test share with it.
struct Scene {
  std::atomic<int> inside{0};    // In an iteration.
  std::atomic<int> overlaps{0};  // So often one began where another was.
  std::array<std::atomic<int>, 8> iterations{};
  std::array<std::atomic<bool>, 8> stuck{};          // To stay in its iteration.
  std::array<std::atomic<bool>, 8> stays{};          // It does.
  std::array<std::atomic<bool>, 8> ended{};          // It was told to begin none any more.
  std::array<std::atomic<bool>, 8> wrote{};          // Its number to its lane.
  std::array<std::atomic<bool>, 8> found_others{};   // A number that another has written there.
  std::array<std::atomic<std::uint64_t>, 8> asks{};  // For so long a lane; 0: not.
  std::array<std::atomic<std::uint64_t>, 8> given{};
};

// Where a trainer's iterations are.
struct Place {
  std::optional<LaneId> lane;  // One of its own if there is none.
  int pages = -1;
  std::string owner;
  std::function<std::uint64_t(std::uint64_t)> grow;
};

class JobTurnsTest : public testing::Test {
 protected:
  struct Trainer {
    std::unique_ptr<TrainerBoard> board;
    int bell = -1;
    int pid = 0;
    int pidfd = -1;
    std::unique_ptr<TurnLease> lease;
  };

  JobTurnsTest()
      : scene_(new(::mmap(nullptr, sizeof(Scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Scene),
        turns_(JobTurns::Create(RealClock::Instance(), MakeJobPolicy("fair").value(), &recorder_).value()) {}
  ~JobTurnsTest() override {
    for (auto& [number, trainer] : trainers_) End(trainer);
    turns_.reset();
    ::munmap(scene_, sizeof(Scene));
  }

  static void End(Trainer& trainer) {
    trainer.lease.reset();
    if (trainer.pid > 0) {
      ::kill(trainer.pid, SIGKILL);
      ::waitpid(trainer.pid, nullptr, 0);
      ::close(trainer.pidfd);
      ::close(trainer.bell);
    }
    trainer.pid = 0;
  }

  // Iterations of a millisecond or so, without end.
  [[noreturn]] static void Train(Scene& scene, std::size_t number, int board_fd, int bell, int pages) {
    const auto board = TrainerBoard::Attach(::dup(board_fd));
    if (!board) ::_exit(1);
    BoardGate gate(**board, RealClock::Instance(), [](int, int) {}, nullptr, bell);
    while (gate.BeginIteration()) {
      if (scene.inside.fetch_add(1) != 0) ++scene.overlaps;
      ++scene.iterations[number];
      if (gate.length() > 0) UseLane(scene, number, pages);
      if (const std::uint64_t needed = scene.asks[number].exchange(0); needed > 0) {
        scene.given[number].store(gate.Grow(needed));
      }
      do {
        ::usleep(500);
        scene.stays[number].store(scene.stuck[number].load());
      } while (scene.stays[number].load());
      scene.inside.fetch_sub(1);
    }
    gate.EndIterations();
    scene.ended[number].store(true);
    for (;;) ::pause();
  }

  static void UseLane(Scene& scene, std::size_t number, int pages) {
    char found = 0;
    if (::pread(pages, &found, 1, 0) == 1 && found != 0 && found != static_cast<char>(number)) {
      scene.found_others[number].store(true);
    }
    const auto own = static_cast<char>(number);
    scene.wrote[number].store(::pwrite(pages, &own, 1, 0) == 1);
  }

  Trainer& Start(std::size_t number, int priority = 0, const Place& place = {}) {
    Trainer& trainer = trainers_[number];
    trainer.board = TrainerBoard::Create().value();
    trainer.board->SetTurn(Turn::kWait);
    trainer.bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    trainer.pid = ::fork();
    if (trainer.pid == 0) Train(*scene_, number, trainer.board->fd(), trainer.bell, place.pages);
    trainer.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, trainer.pid, 0));
    trainer.lease = turns_->Admit({.job = {.session = SessionId{number},
                                           .lane = place.lane.value_or(LaneId{number}),
                                           .order = number,
                                           .priority = priority},
                                   .board = trainer.board.get(),
                                   .bell = trainer.bell,
                                   .pidfd = trainer.pidfd,
                                   .owner = place.owner,
                                   .grow = place.grow});
    return trainer;
  }
  int Done(std::size_t number) { return scene_->iterations[number].load(); }
  bool Moves(std::size_t number) {
    const int before = Done(number);
    return Eventually([&] { return Done(number) > before + 3; });
  }

  static constexpr LaneId kLane{77};
  static constexpr std::uint64_t kLength = std::uint64_t{1} << 20;

  template <typename Event>
  std::vector<Event> Noted() const {
    std::vector<Event> events;
    recorder_.turns().ForEach([&](const FlightRecord& record) {
      if (const auto event = As<Event>(record)) events.push_back(*event);
    });
    return events;
  }

  FlightRecorder recorder_{1024};
  Scene* const scene_;
  std::unique_ptr<JobTurns> turns_;
  std::map<std::size_t, Trainer> trainers_;
};

TEST_F(JobTurnsTest, SeveralTakeTurnsAndNeverTwoAtOnce) {
  for (const std::size_t number : {1, 2, 3}) Start(number);
  for (const std::size_t number : {1, 2, 3}) EXPECT_TRUE(Moves(number)) << number;
  EXPECT_TRUE(Eventually([&] { return turns_->State().switches >= 10; }));
  EXPECT_EQ(scene_->overlaps.load(), 0);
  const TurnsState state = turns_->State();
  EXPECT_EQ(state.policy, "fair");
  ASSERT_EQ(state.jobs.size(), 3U);
  for (const auto& job : state.jobs) EXPECT_GT(job.turns, 1U);
  std::uint64_t measured = 0;
  for (const std::uint64_t count : state.switch_times.counts) measured += count;
  EXPECT_GT(measured, 0U);
  EXPECT_LE(measured, state.switches);
}

TEST_F(JobTurnsTest, OneThatIsKilledInItsTurnLeavesItToOthers) {
  for (const std::size_t number : {1, 2}) Start(number);
  ASSERT_TRUE(Moves(2));
  scene_->stuck[1].store(true);
  ASSERT_TRUE(Eventually([&] { return scene_->stays[1].load(); }));
  ::kill(trainers_[1].pid, SIGKILL);
  EXPECT_TRUE(Moves(2)) << "its end is seen at once, before anybody ends its lease";
}

TEST_F(JobTurnsTest, OneThatIsKilledWhileItWaitsIsGivenNothing) {
  for (const std::size_t number : {1, 2, 3}) Start(number);
  for (const std::size_t number : {1, 2, 3}) ASSERT_TRUE(Moves(number));
  ::kill(trainers_[2].pid, SIGKILL);
  EXPECT_TRUE(Moves(1));
  EXPECT_TRUE(Moves(3));
  End(trainers_[2]);
  EXPECT_TRUE(Moves(1));
  EXPECT_EQ(turns_->State().jobs.size(), 2U);
}

TEST_F(JobTurnsTest, APolicyIsChangedWhileTheyRun) {
  for (const std::size_t number : {1, 2}) Start(number);
  for (const std::size_t number : {1, 2}) ASSERT_TRUE(Moves(number));
  turns_->SetPolicy(MakeJobPolicy("fifo").value());
  ASSERT_TRUE(Eventually([&] {
    const auto jobs = turns_->State().jobs;
    return jobs[0].state != TurnState::kWaits && jobs[1].state == TurnState::kWaits;
  }));
  const int second = Done(2);
  ASSERT_TRUE(Moves(1));
  EXPECT_EQ(Done(2), second) << "the first runs until it ends";
  trainers_[1].lease->SetPaused(true);
  EXPECT_TRUE(Moves(2)) << "or until it is paused";
}

TEST_F(JobTurnsTest, TheImportantOneTakesTheTurn) {
  turns_->SetPolicy(MakeJobPolicy("priority").value());
  Start(1);
  ASSERT_TRUE(Moves(1));
  Start(2, /*priority=*/3);
  ASSERT_TRUE(Moves(2));
  ASSERT_TRUE(Eventually([&] { return turns_->State().jobs[0].state == TurnState::kWaits; }));
  const int first = Done(1);
  ASSERT_TRUE(Moves(2));
  EXPECT_EQ(Done(1), first);
}

TEST_F(JobTurnsTest, OneThatIsToEndBeginsNoIterationMore) {
  for (const std::size_t number : {1, 2}) Start(number);
  for (const std::size_t number : {1, 2}) ASSERT_TRUE(Moves(number));
  trainers_[1].lease->End();
  EXPECT_TRUE(Eventually([&] { return scene_->ended[1].load(); }));
  EXPECT_TRUE(Moves(2));
}

TEST_F(JobTurnsTest, OneThatIsToEndInItsIterationIsWaitedFor) {
  for (const std::size_t number : {1, 2}) Start(number);
  for (const std::size_t number : {1, 2}) ASSERT_TRUE(Moves(number));
  scene_->stuck[1].store(true);
  ASSERT_TRUE(Eventually([&] { return scene_->stays[1].load(); }));
  trainers_[1].lease->End();
  const int others = Done(2);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(Done(2), others) << "what it has is still there";
  scene_->stuck[1].store(false);
  EXPECT_TRUE(Eventually([&] { return scene_->ended[1].load(); }));
  EXPECT_TRUE(Moves(2));
  EXPECT_EQ(scene_->overlaps.load(), 0);
}

TEST_F(JobTurnsTest, WhoWaitsIsKnownToAndForHowLong) {
  turns_->SetPolicy(MakeJobPolicy("fifo").value());
  for (const std::size_t number : {1, 2}) Start(number);
  ASSERT_TRUE(Moves(1));
  EXPECT_TRUE(Eventually([&] { return trainers_[2].lease->waits(); }));
  EXPECT_TRUE(Eventually([&] { return trainers_[2].lease->waited() > 1ms; }));
  EXPECT_LT(trainers_[1].lease->waited(), trainers_[2].lease->waited() + 10s);
}

TEST_F(JobTurnsTest, TheRecorderHearsWhoHadWhichTurn) {
  for (const std::size_t number : {1, 2}) Start(number);
  ASSERT_TRUE(Eventually([&] { return turns_->State().switches >= 6; }));
  for (const std::size_t number : {1, 2}) End(trainers_[number]);
  std::vector<TurnEnded> ended = Noted<TurnEnded>();
  EXPECT_GE(ended.size(), 7U);
  EXPECT_EQ(Noted<TurnBegan>().size(), ended.size()) << "also the turn that was the last ends with its lease";
  std::ranges::sort(ended, {}, &TurnEnded::began);
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_EQ(ended[i].lane, ended[i].job) << "here each has a lane of its own";
    EXPECT_GE(ended[i].at, ended[i].began);
    if (i == 0) continue;
    EXPECT_GE(ended[i].began, ended[i - 1].at) << "one begins when the other has left";
  }
}

TEST_F(JobTurnsTest, TheTurnOfOneThatIsKilledEndsInTheRecord) {
  turns_->SetPolicy(MakeJobPolicy("fifo").value());
  for (const std::size_t number : {1, 2}) Start(number);
  ASSERT_TRUE(Moves(1));
  ASSERT_TRUE(Eventually([&] { return trainers_[2].lease->waits(); }));
  ::kill(trainers_[1].pid, SIGKILL);
  ASSERT_TRUE(Moves(2));
  const auto ended = Noted<TurnEnded>();
  ASSERT_FALSE(ended.empty());
  EXPECT_EQ(ended.back().job, 1U);
  EXPECT_LE(ended.back().at, Noted<TurnBegan>().back().at);
}

TEST_F(JobTurnsTest, ASwitchIsMeasuredFromWhenTheJobBeforeWasDone) {
  turns_->SetPolicy(MakeJobPolicy("fifo").value());
  Start(1);
  ASSERT_TRUE(Moves(1));
  scene_->stuck[1].store(true);
  Start(2);
  ASSERT_TRUE(Eventually([&] { return turns_->State().jobs[0].state == TurnState::kLeaving; }));
  std::this_thread::sleep_for(100ms);
  auto* const page = static_cast<TrainerBoard::Page*>(
      ::mmap(nullptr, sizeof(TrainerBoard::Page), PROT_READ | PROT_WRITE, MAP_SHARED, trainers_[1].board->fd(), 0));
  ASSERT_NE(page, MAP_FAILED);
  const MonotonicTime before = RealClock::Instance().Now();
  page->done.store(board::kDone);
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(trainers_[1].bell, &one, sizeof one), 8);
  ::munmap(page, sizeof(TrainerBoard::Page));
  ASSERT_TRUE(Moves(2));
  const MonotonicTime after = RealClock::Instance().Now();
  ASSERT_TRUE(Eventually([&] { return turns_->State().switch_times.sum > 0ns; }));
  EXPECT_LE(turns_->State().switch_times.sum, after - before) << "and not from when it was told to leave";
}

TEST_F(JobTurnsTest, GarbageInTheWordsOfTurnsStopsNobodyElse) {
  for (const std::size_t number : {1, 2, 3}) Start(number);
  for (const std::size_t number : {1, 2, 3}) ASSERT_TRUE(Moves(number));
  auto* const page = static_cast<TrainerBoard::Page*>(
      ::mmap(nullptr, sizeof(TrainerBoard::Page), PROT_READ | PROT_WRITE, MAP_SHARED, trainers_[1].board->fd(), 0));
  ASSERT_NE(page, MAP_FAILED);
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    page->turn.store(random() & ~2U);  // It is never told to end.
    page->waits_by.store(random());
    page->runs_by.store(random());
    page->done.store(random());
    page->left_at.store(random());
    page->began_at.store(~std::uint64_t{random()});
    ::usleep(200);
  }
  EXPECT_TRUE(Moves(2));
  EXPECT_TRUE(Moves(3));
  page->turn.store(board::NextTurn(1, Turn::kWait));
  EXPECT_TRUE(trainers_[1].lease->Restore());
  EXPECT_FALSE(trainers_[1].lease->Restore());
  EXPECT_TRUE(Moves(1)) << "with its order given anew it takes its turns again";
  page->done.store(board::kDone);
  EXPECT_TRUE(Moves(2)) << "it says that it needs none";
  ::munmap(page, sizeof(TrainerBoard::Page));
}

TEST_F(JobTurnsTest, PagesOfALaneAreKeptBetweenJobsOfOneOwner) {
  const int pages = turns_->OpenLane(kLane).value();
  for (const std::size_t number : {1, 2}) Start(number, 0, {.lane = kLane, .pages = pages, .owner = "a"});
  turns_->SetLane(kLane, kLength, /*shared=*/true);
  EXPECT_TRUE(Eventually([&] { return scene_->found_others[1].load() && scene_->found_others[2].load(); }));
}

TEST_F(JobTurnsTest, NobodyFindsInALaneWhatAJobOfAnotherOwnerHasLeft) {
  const int pages = turns_->OpenLane(kLane).value();
  Start(1, 0, {.lane = kLane, .pages = pages, .owner = "a"});
  ASSERT_TRUE(Moves(1));
  // It has its turn already, without the lane.
  turns_->SetLane(kLane, kLength, /*shared=*/true);
  ASSERT_TRUE(Eventually([&] { return scene_->wrote[1].load(); }));
  Start(2, 0, {.lane = kLane, .pages = pages, .owner = "b"});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Moves(2));
    ASSERT_TRUE(Moves(1));
  }
  ASSERT_TRUE(scene_->wrote[2].load());
  EXPECT_FALSE(scene_->found_others[1].load());
  EXPECT_FALSE(scene_->found_others[2].load());
}

TEST_F(JobTurnsTest, ALaneThatIsToBeShorterIsCutAtABoundaryOfOneWhoIsThereAlone) {
  const int pages = turns_->OpenLane(kLane).value();
  const auto length = [pages] {
    struct stat status{};
    return ::fstat(pages, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  };
  Start(1, 0, {.lane = kLane, .pages = pages, .owner = "a"});
  turns_->SetLane(kLane, 4 * kLength, /*shared=*/true);
  EXPECT_EQ(length(), 4 * kLength) << "longer it is at once";
  ASSERT_TRUE(Moves(1));
  scene_->stuck[1].store(true);
  ASSERT_TRUE(Eventually([&] { return scene_->stays[1].load(); }));
  turns_->SetLane(kLane, kLength, /*shared=*/true);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(length(), 4 * kLength) << "it is in the middle of an iteration";
  scene_->stuck[1].store(false);
  EXPECT_TRUE(Eventually([&] { return length() == kLength; }));
  EXPECT_TRUE(Moves(1));
}

TEST_F(JobTurnsTest, OneThatNeedsALongerLaneIsGivenItWhereThereIsRoom) {
  const int pages = turns_->OpenLane(kLane).value();
  Start(1, 0, {.lane = kLane, .pages = pages, .owner = "a", .grow = [](std::uint64_t needed) {
                 return needed <= 2 * kLength ? needed : 0;
               }});
  turns_->SetLane(kLane, kLength, /*shared=*/true);
  for (const auto& [asked, given] : {std::pair{2 * kLength, 2 * kLength}, {5 * kLength, 2 * kLength}}) {
    scene_->given[1].store(0);
    scene_->asks[1].store(asked);
    EXPECT_TRUE(Eventually([&] { return scene_->given[1].load() == given; })) << scene_->given[1].load();
  }
}

// Somebody else who has the bell can silence it; then turns go on a little later.
TEST_F(JobTurnsTest, ABellThatIsSilencedCostsTimeAlone) {
  for (const std::size_t number : {1, 2}) Start(number);
  for (const std::size_t number : {1, 2}) ASSERT_TRUE(Moves(number));
  std::atomic<bool> stop{false};
  std::thread thief([&] {
    std::uint64_t count = 0;
    while (!stop.load()) [[maybe_unused]]
      const ssize_t read = ::read(trainers_[1].bell, &count, sizeof count);
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Moves(2));
  stop.store(true);
  thief.join();
}

}  // namespace
}  // namespace tandem
