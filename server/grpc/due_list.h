#pragma once

#include <list>
#include <vector>

#include "api/base/clock.h"

namespace tandem::grpc_front {

// Things that must get somewhere by a time of their own. Every thing brings its Place, so that adding and removing
// allocate nothing. Not thread-safe: of whoever owns it, like the places.
template <typename T>
class DueList {
 public:
  // Where a thing stands: in the list or not. Must not be in the list when it goes.
  class Place {
   public:
    explicit Place(T& thing) : thing_(thing), home_(1, this), node_(home_.begin()) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class DueList;
    T& thing_;
    std::list<Place*> home_;  // Holds the node while the list does not.
    const typename std::list<Place*>::iterator node_;
    MonotonicTime due_;
  };

  // One that is in the list already is due at the new time.
  void Add(Place& place, MonotonicTime due) {
    place.due_ = due;
    if (!place.home_.empty()) places_.splice(places_.end(), place.home_);
  }
  // One that is not in the list stays as it is.
  void Remove(Place& place) {
    if (place.home_.empty()) place.home_.splice(place.home_.end(), places_, place.node_);
  }
  // Removes those that are due until then, and says which.
  [[nodiscard]] std::vector<T*> Take(MonotonicTime until) {
    std::vector<T*> taken;
    for (auto at = places_.begin(); at != places_.end();) {
      Place& place = **at++;
      if (place.due_ > until) continue;
      taken.push_back(&place.thing_);
      Remove(place);
    }
    return taken;
  }

 private:
  std::list<Place*> places_;
};

}  // namespace tandem::grpc_front
