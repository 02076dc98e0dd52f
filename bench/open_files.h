#pragma once

namespace tandem::bench {

// Lets this process, and those that it starts from now on, have so many files open if it may; else as many as it may.
void AllowOpenFiles(int count);

}  // namespace tandem::bench
