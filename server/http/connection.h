#pragma once

#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "api/base/cancel_token.h"
#include "api/base/clock.h"
#include "api/wire/byte_budget.h"
#include "server/http/direct_send.h"
#include "server/http/output_queue.h"
#include "server/http/pace.h"
#include "server/http/request_parser.h"
#include "server/http/response.h"
#include "server/http/stream.h"

namespace trantor {
class Channel;
}

namespace tandem::http {

class Shard;
struct StreamGauge;

// One client's connection: reads requests, hands them to the handler one at a time, sends the answers. Requests that
// come before the last one is answered wait in the client's and the kernel's buffers, so that a connection holds at
// most one request, one answer and one read's worth of input. Loop's thread only. Owned by its shard; exchanges hold
// weak pointers. After Close() it lives on until the loop's current turn is over, because the poller may still name it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shard& shard, std::unique_ptr<Stream> stream);
  ~Connection();

  // Starts to listen to the socket.
  void Open();

  // From the exchange of the current request.
  void Answer(Response response);
  // It was written through DirectSend, if it still is to be heard of.
  void TakeNoteOfAnswer();
  void BeginStream(Response head, std::shared_ptr<StreamGauge> gauge);
  void WriteStream(std::string_view data);
  void EndStream();
  void CutStream();

  // From the shard. Closes, or answers 408, when the client has been too slow.
  void Expire(MonotonicTime now);
  // Closes when nothing is under way.
  void Drain();
  void Close();

  // Where the shard's list holds it.
  std::list<std::shared_ptr<Connection>>::iterator place;

 private:
  enum class Phase {
    kHandshake,  // TLS.
    kIdle,       // Between requests.
    kHead,
    kBody,
    kHandling,   // A request is with the handler, or its answer is being sent.
    kLingering,  // The last answer is sent; what still comes is thrown away.
    kClosed,
  };

  // Runs `action`; what it throws costs this connection and nothing else.
  template <typename Action>
  void Guarded(Action action) {
    if (phase_ == Phase::kClosed) return;
    try {
      action();
    } catch (const std::exception&) {
      Close();
    }
  }

  void OnEvent(int events);
  void OnReadable();
  // False: nothing more is to be read in this turn.
  [[nodiscard]] bool ReadOnce();
  void OnInput(std::string_view in);
  void OnEnd();
  // The peer has closed its sending side: it may wait for its answer still, or be gone altogether.
  void OnPeerEnd();

  // Parses from in[used] on until the input is used up or a request must be answered first.
  void Parse(std::string_view in, std::size_t& used);
  void OnParsed(RequestParser::Event event);
  void OnHead();
  void HandToHandler();
  void EndRequest();
  void Refuse(int status, std::string_view message);

  // The answer to the current request, or the refusal of what came instead of one.
  void Send(Response response);
  // Counts a large answer until it is sent. False: clients that do not take theirs have filled the budget.
  [[nodiscard]] bool HoldAnswer(std::size_t bytes);
  void SendText(std::string_view text);
  void Queue(std::string text);
  void Flush();
  // Goes on to the next request when the answer to this one has been sent.
  void FinishIfSent();
  void ContinueWithHeldInput();
  // Goes on to the next request when the answer to this one is being written by another thread.
  void GoOnBehindAnswer();
  // Hears how far that thread came, before anything else is written.
  void SettleAnswer();
  // Closes, or does so once what is left of the last answer has been sent.
  void CloseAfterAnswer();
  void BeginLinger();

  // Bytes that have left for the client so far, without those that wait in the kernel.
  [[nodiscard]] std::size_t Delivered() const;
  [[nodiscard]] bool OutputStuck(MonotonicTime now);
  void Enter(Phase phase);
  void UpdateEvents();

  Shard& shard_;  // Outlives every connection.
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<trantor::Channel> channel_;
  RequestParser parser_;

  Phase phase_ = Phase::kIdle;
  MonotonicTime phase_since_;
  int watched_ = 0;           // The events that channel_ waits for.
  bool registered_ = false;   // The poller knows channel_.
  bool parsing_ = false;      // Inside Parse(): an answer given at once must not start another.
  bool ended_ = false;        // The peer has closed its side, and all it sent has been read.
  bool half_closed_ = false;  // The peer has closed its side.

  // Input beyond the request that is being handled; while it is there the socket is not read.
  std::string held_;
  std::size_t held_used_ = 0;

  // The request being handled, if any.
  bool being_handled_ = false;
  MonotonicTime arrival_;
  Delivery delivery_;
  bool answered_ = false;
  bool probed_ = false;  // Its peer, for being there.
  bool streaming_ = false;
  std::shared_ptr<CancelToken> cancel_;  // Shared with its exchange.
  std::shared_ptr<StreamGauge> gauge_;   // Shared with its exchange.

  // Shared with the exchanges.
  const std::shared_ptr<DirectSend> direct_ = std::make_shared<DirectSend>();
  bool unsettled_ = false;  // The answer before this request was written there; how far is still to be heard.
  Pace body_pace_;          // While in kBody.
  OutputQueue output_;
  BudgetShare answer_share_;     // For output_, where that is large.
  Pace output_pace_;             // While output_ is not empty.
  std::size_t output_sent_ = 0;  // All bytes that the kernel has taken.
  std::size_t discarded_ = 0;    // While lingering.
};

}  // namespace tandem::http
