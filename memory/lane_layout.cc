#include "memory/lane_layout.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "api/base/format.h"

namespace tandem {

void AssertApart(std::span<const AddressRange> ranges, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const AddressRange& range : ranges) {
    if (range.begin < end || range.end < range.begin || range.end > size) {
      std::fputs(
          Format("tandem: memory of lanes overlaps: {} to {}, above {}, of {}\n", range.begin, range.end, end, size)
              .c_str(),
          stderr);
      std::abort();
    }
    end = range.end;
  }
}

bool LaneLayout::Keep(SessionId session, std::uint64_t bytes) {
  std::vector<AddressRange> found;
  std::uint64_t at = 0;
  const auto take = [&](std::uint64_t end) {
    const AddressRange piece{.begin = at, .end = at + std::min(bytes, end - at)};
    if (piece.size() > 0) found.push_back(piece);
    bytes -= piece.size();
  };
  for (const AddressRange& piece : Pieces()) {
    take(piece.begin);
    at = piece.end;
  }
  take(LanesBegin());
  if (bytes > 0) return false;
  std::vector<AddressRange>& kept = kept_[session];
  kept.insert(kept.end(), found.begin(), found.end());
  Settle();
  return true;
}

void LaneLayout::Drop(SessionId session) {
  kept_.erase(session);
  Settle();
}

void LaneLayout::Want(LaneId lane, std::uint64_t length) {
  if (Place* place = PlaceOf(lane)) {
    place->wanted = length;
  } else {
    lanes_.push_back({.id = lane, .wanted = length});
  }
  Settle();
}

void LaneLayout::Close(LaneId lane) {
  std::erase_if(lanes_, [lane](const Place& place) { return place.id == lane; });
  Settle();
}

bool LaneLayout::Begin(LaneId lane) {
  Place* place = PlaceOf(lane);
  if (place == nullptr || !place->range) return false;
  place->busy = true;
  return true;
}

void LaneLayout::Boundary(LaneId lane) {
  if (Place* place = PlaceOf(lane)) place->busy = false;
  Settle();
}

std::optional<AddressRange> LaneLayout::Find(LaneId lane) const {
  const auto found = std::ranges::find(lanes_, lane, &Place::id);
  return found == lanes_.end() ? std::nullopt : found->range;
}

std::span<const AddressRange> LaneLayout::Kept(SessionId session) const {
  const auto found = kept_.find(session);
  if (found == kept_.end()) return {};
  return found->second;
}

std::uint64_t LaneLayout::holes() const {
  std::uint64_t kept = 0;
  for (const AddressRange& piece : Pieces()) kept += piece.size();
  return KeptEnd() - kept;
}

std::vector<AddressRange> LaneLayout::Pieces() const {
  std::vector<AddressRange> pieces;
  for (const auto& [session, ranges] : kept_) pieces.insert(pieces.end(), ranges.begin(), ranges.end());
  std::ranges::sort(pieces, {}, &AddressRange::begin);
  return pieces;
}

std::uint64_t LaneLayout::KeptEnd() const {
  std::uint64_t end = 0;
  for (const auto& [session, ranges] : kept_) {
    for (const AddressRange& piece : ranges) end = std::max(end, piece.end);
  }
  return end;
}

std::uint64_t LaneLayout::LanesBegin() const {
  std::uint64_t begin = size_;
  for (const Place& place : lanes_) {
    if (place.range) begin = std::min(begin, place.range->begin);
  }
  return begin;
}

LaneLayout::Place* LaneLayout::PlaceOf(LaneId lane) {
  const auto found = std::ranges::find(lanes_, lane, &Place::id);
  return found == lanes_.end() ? nullptr : &*found;
}

bool LaneLayout::CanBe(const Place& lane, const AddressRange& there) const {
  if (there.begin < KeptEnd()) return false;
  bool above = true;
  for (const Place& other : lanes_) {
    if (&other == &lane) {
      above = false;
    } else if (other.range) {
      if (above ? other.range->begin < there.end : other.range->end > there.begin) return false;
    }
  }
  return true;
}

bool LaneLayout::MoveOne() {
  std::uint64_t top = size_;
  for (Place& lane : lanes_) {
    // A lane that is to shrink has all of its length until its boundary.
    const std::uint64_t length = lane.busy ? std::max(lane.range->size(), lane.wanted) : lane.wanted;
    const AddressRange there{.begin = top - std::min(top, length), .end = top};
    top = there.begin;
    if (lane.busy || lane.range == there) continue;
    if (there.size() == length && CanBe(lane, there)) {
      lane.range = there;
      return true;
    }
    if (lane.range && lane.range->size() > lane.wanted) {
      lane.range->begin = lane.range->end - lane.wanted;
      return true;
    }
  }
  return false;
}

void LaneLayout::Settle() {
  while (MoveOne()) {
  }
  std::vector<AddressRange> all = Pieces();
  for (auto lane = lanes_.rbegin(); lane != lanes_.rend(); ++lane) {
    if (lane->range) all.push_back(*lane->range);
  }
  AssertApart(all, size_);
}

}  // namespace tandem
