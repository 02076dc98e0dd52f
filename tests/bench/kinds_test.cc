// The scenario files that are shipped, and what the kinds of measurement refuse.

#include "bench/kinds.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/json.h>

#include "bench/scenario.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

TEST(ShippedScenarios, AreSoundAndKeepTheirTime) {
  const fs::path bench = fs::path(TANDEM_SOURCE_DIR) / "bench";
  const std::vector<fs::path> files = ScenarioFiles(bench / "scenarios");
  ASSERT_GE(files.size(), 2U);
  for (const fs::path& file : files) {
    const auto scenario = ReadScenario(file, AllKinds());
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_EQ(scenario->name, file.stem());
    EXPECT_LE(scenario->full.minutes, 65) << file;
    EXPECT_LE(scenario->quick.minutes, 3) << file;
    for (const PeerSpec& peer : scenario->peers) {
      const fs::path list = bench / "peers" / (peer.packages + ".txt");
      EXPECT_TRUE(peer.packages.empty() || fs::exists(list)) << list;
    }
  }
}

TEST(ShippedScenarios, ColocationTakesAQuotaForAllOfTraining) {
  const fs::path file = fs::path(TANDEM_SOURCE_DIR) / "bench" / "scenarios" / "colocation.json";
  const auto own = ReadScenario(file, AllKinds());
  const auto limited = ReadScenario(file, AllKinds(), 1.5);
  ASSERT_TRUE(own && limited) << (own ? limited : own).error().message;
  // Its own cells under a quota are the same as others by then, but for their loads.
  EXPECT_LT(limited->parts.size(), own->parts.size());
  int rows = 0;
  for (const ScenarioPart& part : limited->parts) {
    for (const RowSpec& row : part.rows) {
      if (!row.cell.contains(", load ")) continue;
      EXPECT_THAT(row.cell, testing::HasSubstr(", quota of 1.5 cores")) << row.metric;
      if (row.metric != "p99 beside training ÷ alone" || !row.goal.must) continue;
      EXPECT_EQ(row.goal.must, 1.15);
      ++rows;
    }
  }
  EXPECT_GE(rows, 8);
}

// A scenario with this measurement, whose one row shows `of`.
std::string ErrorOf(const std::string& fields, const std::string& of = "ready") {
  const std::string text = R"({"name": "mine", "what": "a thing",
    "full": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
    "quick": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
    "peers": [{"name": "null", "command": ["x", "{port}"], "ready": "/", "start_timeout_s": 1}],
    "measurements": [{)" + fields +
                           R"(, "rows": [{"metric": "m", "cell": "c", "of": ")" + of + R"(", "unit": "s"}]}]})";
  const auto scenario = ParseScenario(text, AllKinds());
  return scenario ? "no error" : scenario.error().message;
}

TEST(Kinds, TakeWhatTheirFieldsMayBe) {
  EXPECT_EQ(ErrorOf(R"("kind": "start")"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "idle", "model": "tiny", "connections": 5)", "resident"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "side_by_side", "model": "tiny", "users": 2, "sides": [
      {"name": "s", "from": "peer", "peer": "null", "protocol": "raw", "path": "/"}])",
                    "s.p99"),
            "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "side_by_side", "model": "tiny", "users": 2, "sides": [
      {"name": "s", "from": "tandem", "protocol": "grpc", "workers": 65}])",
                    "s.p99"),
            "/measurements/0/sides/0/workers: must be from 0 to 64, not 65");
  EXPECT_EQ(ErrorOf(R"("kind": "overload", "model": "tiny", "slo_runs": 5, "times": 3)", "queue.recovery_usual"),
            "no error");
  const std::string beside =
      R"("kind": "beside_training", "model": "tiny", "network": "squeezenet", "batch": 4, "load": 0.3, "windows": 5)";
  EXPECT_EQ(ErrorOf(beside + R"(, "quota": 1, "policies": ["tandem", "idle"])", "idle.throttled"), "no error");
  for (const char* of :
       {"tandem.wait", "alone.asked", "alone.wait_run", "idle.acknowledged", "better", "better_by_medians"}) {
    EXPECT_EQ(ErrorOf(beside + R"(, "quota": 0, "policies": ["tandem", "idle"])", of), "no error");
  }
  EXPECT_EQ(ErrorOf(beside + R"(, "pool": 3, "quota": 0, "policies": ["idle"])", "idle.kept"), "no error");
  EXPECT_EQ(ErrorOf(beside + R"(, "pool": 0, "quota": 0, "policies": ["idle"])", "idle.kept"),
            "/measurements/0/pool: must be from 1 to 1000, not 0");
  EXPECT_EQ(ErrorOf(beside + R"(, "quota": 0, "policies": [])", "alone.p99"),
            "/measurements/0/policies: must hold 'idle'");
  EXPECT_THAT(ErrorOf(beside + R"(, "quota": 0, "policies": ["idle", "herald"])", "alone.p99"),
              testing::HasSubstr("policy 'herald' is not known; known are tandem"));
  EXPECT_EQ(ErrorOf(beside + R"(, "quota": 0, "policies": ["idle", "idle"])", "alone.p99"),
            "/measurements/0/policies: 'idle' is there twice");
  const std::string three = beside + R"(, "quota": 0, "policies": ["tandem", "pause", "idle"])";
  EXPECT_EQ(ErrorOf(three + R"(, "trained_alone": ["tandem", "idle"])", "pause.kept"), "no error");
  EXPECT_EQ(ErrorOf(three + R"(, "trained_alone": ["tandem"])", "pause.kept"),
            "/measurements/0/trained_alone: must hold 'idle'");
  EXPECT_EQ(ErrorOf(three + R"(, "trained_alone": ["idle", "none"])", "pause.kept"),
            "/measurements/0/trained_alone: 'none' is not among the policies");
  EXPECT_EQ(ErrorOf(R"("kind": "decision", "trainers": 32, "requests": 1000, "limited": true)", "applied"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "gate")", "gate"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "interruption")", "stopped"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_rate", "peer": "null", "start": 5)", "rate"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_lag", "peer": "null", "rate": 5, "arrivals": "poisson")", "lag_p99"),
            "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_outstanding", "peer": "null", "rate": 5, "requests": 9)", "memory"),
            "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_growth", "peer": "null", "rate": 5, "early_s": 1, "late_s": 2)", "growth"),
            "no error");
  const std::string network = R"(, "network": "resnet50", "batch": 4)";
  EXPECT_EQ(ErrorOf(R"("kind": "training_rate")" + network, "libtorch.rate"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "training_checkpoint", "steps": 5)" + network, "stall"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "training_gate", "steps": 5)" + network, "cost"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "training_pause", "times": 5)" + network, "resume"), "no error");
  EXPECT_EQ(ErrorOf(R"("kind": "training_start", "model": "squeezenet", "batch": 4)", "first_step"), "no error");
}

TEST(Kinds, TurnsAreOfSeveralJobsUnderPoliciesThatAreKnown) {
  const auto turns = [](const std::string& jobs, const std::string& policies) {
    return ErrorOf(R"("kind": "job_turns", "jobs": [)" + jobs + R"(], "policies": [)" + policies + "]",
                   "fifo.makespan");
  };
  const std::string job = R"({"network": "transformer", "batch": 1, "steps": 5, "count": 2})";
  EXPECT_EQ(turns(job, R"("fifo", "srtf")"), "no error");
  EXPECT_EQ(turns(job, R"("fifo", "rr")"),
            "/measurements/0/policies: job policy 'rr' is not known; known are fifo, pack, srtf, fair, fair_memory, "
            "priority");
  EXPECT_EQ(turns(R"({"network": "transformer", "batch": 1, "steps": 5})", R"("fifo")"),
            "/measurements/0/jobs: there must be 2 to 64 jobs, not 1");
  EXPECT_EQ(ErrorOf(R"("kind": "jobs_at_once", "policy": "fair", "seconds": 9, "jobs": [{"network": "transformer", )"
                    R"("batch": 1, "count": 20}])",
                    "spread"),
            "no error");
}

TEST(Kinds, EstimatesAreOfJobsThatAreThere) {
  const auto cells = [](const std::string& list) {
    return ErrorOf(R"("kind": "training_estimate", "cells": [)" + list + "]", "ephemeral.high");
  };
  const std::string place = "/measurements/0/cells";
  const std::string cell = R"({"batch": 1, "networks": ["transformer"], "optimizers": ["sgd"])";
  EXPECT_EQ(cells(cell + "}, " + cell + R"(, "rounds": 2})"), "no error");
  EXPECT_EQ(cells(cell + R"(, "rounds": 2})"), place + ": there must be one for a single round");
  EXPECT_EQ(cells(R"({"batch": 1, "networks": ["transformer"], "optimizers": ["lion"]})"),
            place + "/0/optimizers: must be sgd or adam, not 'lion'");
  EXPECT_EQ(cells(R"({"batch": 1, "optimizers": ["sgd"]})"), place + "/0/networks: there is none");
  EXPECT_EQ(cells(R"({"batch": 65, "networks": ["transformer"], "optimizers": ["sgd"]})").substr(0, place.size() + 8),
            place + "/0/batch");
}

TEST(Kinds, ASimulationIsOfAFileAndAsManyRequestsAsCanBeTimed) {
  const std::string kind = R"("kind": "simulation_speed", )";
  EXPECT_EQ(ErrorOf(kind + R"("file": "x.json", "requests": 1000000)", "seconds"), "no error");
  EXPECT_EQ(ErrorOf(kind + R"("file": "x.json", "case": "load 0.3", "requests": 1000000)", "seconds"), "no error");
  EXPECT_EQ(ErrorOf(kind + R"("requests": 1000000)", "seconds"), "/measurements/0/file: is missing");
  EXPECT_EQ(ErrorOf(kind + R"("file": "x.json", "requests": 10)", "seconds"),
            "/measurements/0/requests: must be from 1000 to 1e+07, not 10");
}

TEST(Kinds, DepthsAreOfNetworksThatThereAre) {
  const auto depths = [](const std::string& layers) {
    return ErrorOf(R"("kind": "training_depth", "memory_mib": 448, "batch": 64, "steps": 5, )" + layers, "deeper");
  };
  EXPECT_EQ(depths(R"("first": 20, "last": 56, "apart": 18)"), "no error");
  for (const char* layers : {R"("first": 21, "last": 56, "apart": 18)", R"("first": 20, "last": 56, "apart": 17)"}) {
    EXPECT_NE(depths(layers).find("six layers to a set of blocks"), std::string::npos) << depths(layers);
  }
  EXPECT_NE(depths(R"("first": 56, "last": 20, "apart": 18)").find("/last"), std::string::npos);
  EXPECT_NE(depths(R"("first": 20, "last": 5000, "apart": 18)").find("/last"), std::string::npos);
}

TEST(Kinds, ModelsThatAreServedAreNetworks) {
  const auto networks = [](const std::string& list) {
    return ErrorOf(R"("kind": "served_memory", "copies": 2, "networks": [)" + list + "]", "ratio");
  };
  const std::string place = "/measurements/0/networks";
  EXPECT_EQ(networks(R"("squeezenet", "inception_v1")"), "no error");
  EXPECT_EQ(networks(""), place + ": there is none");
  EXPECT_EQ(networks(R"("../secret")"), place + ": '../secret' is not the name of a network");
  EXPECT_EQ(ErrorOf(R"("kind": "served_memory", "copies": 0, "networks": ["tiny"])", "ratio").substr(0, 23),
            "/measurements/0/copies:");
}

TEST(Kinds, SideBySideRefusesSidesThatMakeNoSense) {
  const auto sides = [](const std::string& list) {
    return ErrorOf(R"("kind": "side_by_side", "model": "tiny", "users": 1, "sides": [)" + list + "]", "s.p50");
  };
  const std::string place = "/measurements/0/sides";
  EXPECT_EQ(sides(""), place + ": must list at least one side");
  EXPECT_EQ(sides(R"({"name": "s", "from": "moon"})"),
            place + "/0/from: must be one of bare, tandem, peer, loopback, json_decoding, not 'moon'");
  EXPECT_EQ(sides(R"({"name": "s.t", "from": "bare"})"), place + "/0/name: must not hold a point");
  EXPECT_EQ(sides(R"({"name": "s", "from": "bare", "protocol": "grpc"})"), place + "/0/protocol: is not known here");
  EXPECT_EQ(sides(R"({"name": "s", "from": "tandem", "protocol": "raw"})"),
            place + "/0/protocol: tandem does not speak raw bytes");
  EXPECT_EQ(sides(R"({"name": "s", "from": "tandem", "protocol": "smoke"})"),
            place + "/0/protocol: must be one of rest_binary, rest_json, grpc, raw, not 'smoke'");
  EXPECT_EQ(sides(R"({"name": "s", "from": "peer", "peer": "nobody", "protocol": "grpc"})"),
            place + "/0/peer: there is no peer 'nobody'; there is null");
  EXPECT_EQ(sides(R"({"name": "s", "from": "peer", "peer": "null", "protocol": "raw", "path": "x"})"),
            place + "/0/path: must be a path such as /infer, not 'x'");
  EXPECT_EQ(sides(R"({"name": "s", "from": "loopback"})"), place + "/0/answer_bytes: is missing");
  EXPECT_EQ(sides(R"({"name": "s", "from": "bare"}, {"name": "s", "from": "bare"})"),
            place + "/1/name: there are two sides 's'");
  EXPECT_EQ(sides(R"({"name": "t", "from": "json_decoding"})"),
            "/measurements/0/rows/0: this measurement has no series 's.p50'; it has t.p50, t.speed");
}

TEST(Kinds, SeveralModelsHaveNamesRatesAndAPolicyOfTheirOwn) {
  const auto error = [](const std::string& models, const std::string& trains, const std::string& of,
                        const std::string& policy = "tandem") {
    return ErrorOf(R"("kind": "several_models", "slo_times": 2, "models": [)" + models + R"(], "trains": [)" + trains +
                       R"(], "policy": ")" + policy + "\"",
                   of);
  };
  const std::string tiny = R"({"model": "tiny", "load": 0.1})";
  const std::string trained = R"({"network": "transformer", "batch": 8})";
  for (const char* of : {"attainment", "tiny.attainment", "tiny.slo", "transformer.rate", "missed"}) {
    EXPECT_EQ(error(tiny, trained, of), "no error");
  }
  EXPECT_EQ(error("", trained, "load"), "/measurements/0/models: must list at least one model");
  EXPECT_EQ(error(tiny, "", "load"), "/measurements/0/trains: must list at least one network");
  EXPECT_EQ(error(tiny + "," + tiny, trained, "load"), "/measurements/0/models/1/model: is there twice");
  EXPECT_EQ(error(tiny, trained + "," + trained, "load"), "/measurements/0/trains/1/network: is there twice");
  EXPECT_EQ(error(R"({"model": "tiny", "load": 2})", trained, "load"),
            "/measurements/0/models/0/load: must be from 0.001 to 1, not 2");
  EXPECT_THAT(error(tiny, trained, "load", "herald"),
              testing::HasSubstr("/measurements/0/policy: co-location policy 'herald' is not known"));
}

TEST(Kinds, OthersRefuseParametersThatMakeNoSense) {
  EXPECT_EQ(ErrorOf(R"("kind": "idle", "model": "tiny", "connections": 0)"),
            "/measurements/0/connections: must be from 1 to 1e+06, not 0");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_rate", "peer": "nobody", "start": 5)"),
            "/measurements/0/peer: there is no peer 'nobody'; there is null");
  EXPECT_TRUE(ErrorOf(R"("kind": "generator_lag", "peer": "null", "arrivals": "sometimes")")
                  .starts_with("/measurements/0/arrivals: "));
  EXPECT_EQ(ErrorOf(R"("kind": "generator_lag", "peer": "null", "arrivals": "trace:x.csv")"),
            "/measurements/0/arrivals: must be an open loop without a file, not 'trace:x.csv'");
  EXPECT_EQ(ErrorOf(R"("kind": "generator_growth", "peer": "null", "rate": 5, "early_s": 3, "late_s": 2)"),
            "/measurements/0/late_s: must be above early_s, 3, not 2");
  EXPECT_EQ(ErrorOf(R"("kind": "training_rate", "network": "alexnet", "batch": 4)", "tandem.rate"),
            "/measurements/0/network: there is no network 'alexnet'; there are squeezenet, resnet50 and transformer");
  EXPECT_EQ(ErrorOf(R"("kind": "training_rate", "network": "resnet50", "batch": 65)", "tandem.rate"),
            "/measurements/0/batch: must be from 1 to 64, not 65");
}

}  // namespace
}  // namespace tandem::bench
