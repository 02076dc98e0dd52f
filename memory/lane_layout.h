#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "memory/lane.h"

namespace tandem {

// Addresses from `begin` up to, but not including, `end`.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t size() const { return end - begin; }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// Ends the process, in every build, unless these lie within `size` and one above the other, in the order given.
void AssertApart(std::span<const AddressRange> ranges, std::uint64_t size);

// The lanes of a LaneTable as ranges of one address space, as on a GPU. Persistent memory grows from address 0 up,
// lanes from the other end down, one below the other as they were opened. Where bytes are budgets without addresses, as
// on a CPU, nobody needs it.
//
// A lane that is not in the middle of an iteration is empty. So it is moved without copying a byte: it slides to where
// it belongs, which is directly below the lane above, as soon as nobody is in its way, and takes the length that it is
// to have. One in the middle of an iteration never moves and keeps its length. Lanes never pass one another, which is
// why there always is one that can move while any is not where it belongs: when every lane has come to a boundary as
// many times as there are lanes, and once more, all are where they belong, and what is free is one piece.
//
// Persistent memory is never moved. What somebody leaves is filled by who comes next, in several pieces if need be; a
// lane cannot use it. So the table's budget is to be size() - holes(): then whatever the table admits has room here,
// as soon as lanes have slid.
//
// That no ranges overlap is checked after every operation, in every build, or the process ends. A plain value: no
// clock, no lock. Not thread-safe: its owner guards it.
class LaneLayout {
 public:
  explicit LaneLayout(std::uint64_t size) : size_(size) {}

  // So many bytes more for a session that has some, or none yet. False: lanes are in the way, and nothing has changed;
  // to be tried again when one has come to a boundary.
  [[nodiscard]] bool Keep(SessionId session, std::uint64_t bytes);
  // All that it has.
  void Drop(SessionId session);

  // Opens a lane, or says which length it is to have: at once if it is not in the middle of an iteration.
  void Want(LaneId lane, std::uint64_t length);
  void Close(LaneId lane);
  // An iteration begins in it. False: there is no such lane, or it has no place yet.
  [[nodiscard]] bool Begin(LaneId lane);
  // The iteration has ended.
  void Boundary(LaneId lane);

  // Where a lane is; nullopt: it has no place yet. It may have another length than it is to have.
  [[nodiscard]] std::optional<AddressRange> Find(LaneId lane) const;
  // The pieces that a session has, in no particular order.
  [[nodiscard]] std::span<const AddressRange> Kept(SessionId session) const;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Between pieces of persistent memory.
  [[nodiscard]] std::uint64_t holes() const;
  // Between persistent memory and the lowest lane: what the next lane, or more persistent memory, can have at once.
  [[nodiscard]] std::uint64_t gap() const { return LanesBegin() - KeptEnd(); }

 private:
  struct Place {
    LaneId id{};
    std::uint64_t wanted = 0;
    std::optional<AddressRange> range;
    bool busy = false;
  };

  [[nodiscard]] std::vector<AddressRange> Pieces() const;
  [[nodiscard]] std::uint64_t KeptEnd() const;
  [[nodiscard]] std::uint64_t LanesBegin() const;
  [[nodiscard]] Place* PlaceOf(LaneId lane);
  // Whether nothing is in the way of this lane there.
  [[nodiscard]] bool CanBe(const Place& lane, const AddressRange& there) const;
  // Moves what can be moved, and looks whether all is well.
  void Settle();
  [[nodiscard]] bool MoveOne();

  std::uint64_t size_;
  std::map<SessionId, std::vector<AddressRange>> kept_;
  std::vector<Place> lanes_;  // From the far end down; those that have a place are in that order.
};

}  // namespace tandem
