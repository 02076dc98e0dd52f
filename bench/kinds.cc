#include "bench/kinds.h"

#include "bench/beside_training.h"
#include "bench/decision_cost.h"
#include "bench/generator_kinds.h"
#include "bench/interruption.h"
#include "bench/job_turns.h"
#include "bench/overload.h"
#include "bench/served_memory.h"
#include "bench/server_kinds.h"
#include "bench/several_models.h"
#include "bench/side_by_side.h"
#include "bench/simulation_speed.h"
#include "bench/training_kinds.h"

namespace tandem::bench {

MeasurementKinds AllKinds() {
  return {
      {"beside_training", ParseBesideTraining},
      {"decision", ParseDecision},
      {"gate", ParseGate},
      {"generator_growth", ParseGeneratorGrowth},
      {"generator_lag", ParseGeneratorLag},
      {"generator_outstanding", ParseGeneratorOutstanding},
      {"generator_rate", ParseGeneratorRate},
      {"idle", ParseIdle},
      {"interruption", ParseInterruption},
      {"job_turns", ParseJobTurns},
      {"jobs_at_once", ParseJobsAtOnce},
      {"overload", ParseOverload},
      {"served_memory", ParseServedMemory},
      {"several_models", ParseSeveralModels},
      {"side_by_side", ParseSideBySide},
      {"simulation_speed", ParseSimulationSpeed},
      {"start", ParseStart},
      {"training_checkpoint", ParseTrainingCheckpoint},
      {"training_depth", ParseTrainingDepth},
      {"training_estimate", ParseTrainingEstimate},
      {"training_gate", ParseTrainingGate},
      {"training_pause", ParseTrainingPause},
      {"training_rate", ParseTrainingRate},
      {"training_start", ParseTrainingStart},
  };
}

}  // namespace tandem::bench
