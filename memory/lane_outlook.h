#pragma once

#include <vector>

#include "memory/lane_table.h"

namespace tandem {

// What would be of a session that waits. Pure: they try it on a copy of the table.

// The table when all sessions have ended that end by themselves, and every lane has come to a boundary.
[[nodiscard]] LaneTable OnceOthersEnd(const LaneTable& table);

// Who would have to leave for a session that needs so much: one of those who end by themselves, if one is enough, and
// of several such the one with the least memory. Else several of whom none could stay, first of those who end. Empty
// when nobody has to, or when it would not help.
[[nodiscard]] std::vector<SessionId> WhoMustLeave(const LaneTable& table, const SessionNeed& need);

}  // namespace tandem
