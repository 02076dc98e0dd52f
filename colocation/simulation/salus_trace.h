#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "colocation/simulation/job_mix.h"

namespace tandem::simulation {

// Jobs in the shape of the trace that Salus was measured with (Yu and Chowdhury, MLSys 2020: 100 training jobs on a
// P100 of 16 GB). The trace is not published. What is known of it is drawn from the published table, in minutes:
//
//          makespan  mean queueing  mean completion  95th percentile of completion
//   FIFO      303.4          167.6            170.6                          251.1
//   SRTF      306.0           28.6             53.4                          217.0
//   PACK      287.4          129.9            145.5                          266.1
//   FAIR      301.6           58.5             96.6                          281.2
//
// Three numbers below come from three of these figures; what the others come to is the simulator's own. By its
// scripts Salus had one lane under SRTF, and one job at a time under FIFO (JobMix::max_lanes of 1), and any number of
// lanes under PACK and FAIR.
struct SalusTrace {
  std::size_t jobs = 100;
  // Of a job alone, on average: FIFO's makespan over 100 jobs. Completion less queueing says the same (3.0).
  std::chrono::seconds mean{182};
  // All come within this time, none more likely at one moment than at another. Under FIFO the 95th of 100 jobs ends at
  // about 0.95 × 303.4 = 288 min, and 95 of 100 wait and run for 251.1 at most. So it came at about 37 min, which is
  // 0.95 × 39.
  std::chrono::minutes arrivals{39};
  // Deviation of the logarithm of a job's time. From FAIR's mean completion: if all were there from the beginning and
  // shared equally, that would be (1 - G) × makespan, where G = 0.68 says how unequal the jobs are (Gini), and a
  // log-normal distribution of 1.4 has that. As they come within 39 min it is about 0.1 less.
  double spread = 1.3;
  // The memory that its scripts reckon with, and what workloads need at their peak, P being a small part of it: the
  // least and the most in its repository's list. In between none is more likely than another on a logarithmic scale.
  std::uint64_t budget = 14'000'000'000;
  std::uint64_t least_ephemeral = 700'000'000;
  std::uint64_t most_ephemeral = 12'700'000'000;
  // Persistent memory is that of the weights of one of the networks that Salus trained, by its published number of
  // parameters. 0: none, so that the order of turns is all that counts.
  std::uint64_t bytes_per_parameter = 4;
  // The part of the device that a job keeps busy is as likely anything from this to all of it. Its search for
  // hyper-parameters, 300 jobs, was done 2.38 times as fast when they were packed: these keep 0.42 busy.
  double least_width = 0.42;

  std::uint64_t seed = 1;  // Of the order of jobs, their arrivals and their memory.
};

// Iterations of a job are joined into turns of a second: as a switch takes no time here, shorter ones make no
// difference.
[[nodiscard]] JobMix MakeSalusMix(const SalusTrace& trace);

}  // namespace tandem::simulation
