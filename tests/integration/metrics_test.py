"""/metrics, read by Prometheus' own parser: names, labels, and that the numbers move as they should."""
import json
import pathlib
import subprocess
import sys
import time
import urllib.parse
from multiprocessing import shared_memory

import numpy as np
import tritonclient.grpc
import tritonclient.utils
from prometheus_client.parser import text_string_to_metric_families

import models
from raw_http import GOOD_BODY, Connection, HostileTest, request, slow_body
from tandem_server import ROOT, until

ODD_NAME = 'we"ird näme{x="1"}'
DURATIONS = {
    f"nv_inference_{kind}_duration_us"
    for kind in ("request", "queue", "compute_input", "compute_infer", "compute_output")
}
COUNTERS = {
    "nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count", "nv_inference_exec_count",
    "tandem_run_predicted_bound"
} | DURATIONS
GAUGES = {
    "nv_inference_pending_request_count", "nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes",
    "tandem_queue_depth", "tandem_build_info", "process_resident_memory_bytes", "process_open_fds", "process_threads"
}


class Metrics(HostileTest):
    # What is late is to be seen, not only what is refused.
    flags = ("--admission", "queue")

    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())
        models.place(repository, ODD_NAME, models.bias(5))

    def scrape(self, port=None):
        """(name, labels) → value, and name → type."""
        answer = self.server.call("GET", "/metrics", port=port or self.server.http_port)
        self.assertEqual(answer.status, 200, answer)
        self.assertRegex(answer.headers["Content-Type"], r"^text/plain; version=0\.0\.4")
        values, types = {}, {}
        for family in text_string_to_metric_families(answer.body.decode()):
            self.assertTrue(family.documentation, family.name)
            types[family.name] = family.type
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                self.assertNotIn(key, values, "a sample is given twice")
                values[key] = sample.value
        return values, types

    def growth(self, act):
        """What grew by how much while `act()` ran, by (name, labels)."""
        before, _ = self.scrape()
        act()
        after, _ = self.scrape()
        return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}

    def infer(self, model="bias", status=200, body=GOOD_BODY, **headers):
        path = f"/v2/models/{urllib.parse.quote(model, safe='')}/infer"
        answer = self.send(
            request(body, path, headers=[(name.replace("_", "-"), value) for name, value in headers.items()]))
        self.assertEqual(answer.status, status, answer)

    def test_both_ports_speak_prometheus(self):
        self.infer()
        names = []
        for port in (self.server.http_port, self.server.metrics_port):
            values, types = self.scrape(port)
            names.append(set(types))
            for name in COUNTERS:
                self.assertEqual(types.get(name), "counter", name)
            for name in GAUGES:
                self.assertEqual(types.get(name), "gauge", name)
            for name in ("tandem_request_latency_seconds", "tandem_batch_size", "tandem_run_prediction_ratio"):
                self.assertEqual(types.get(name), "histogram", name)
            for key in values:
                if key[0].removesuffix("_total") in COUNTERS:
                    self.assertLessEqual({"model", "version"}, {label for label, _ in key[1:]}, key)
        self.assertEqual(*names)

    def test_the_metrics_port_serves_nothing_else(self):
        port = self.server.metrics_port
        for path in ("/", "/v2", "/v2/health/live", "/v2/models/bias", "/v2/openapi.json", "/metrics/", "/metrics/x",
                     "//metrics"):
            self.assertIn(self.server.call("GET", path, port=port).status, {400, 404}, path)
        self.assertEqual(self.server.call("POST", "/v2/models/bias/infer", GOOD_BODY, port=port).status, 404)
        self.assertEqual(self.server.call("POST", "/v2/repository/index", b"", port=port).status, 404)
        self.assertEqual(self.server.call("POST", "/metrics", b"", port=port).status, 405)
        self.assertEqual(self.server.call("HEAD", "/metrics", port=port).status, 200)

    def test_counts_successes(self):
        two = json.dumps({"inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP32", "data": [0] * 8}]}).encode()

        def act():
            for _ in range(5):
                self.infer(body=two)

        grown = self.growth(act)
        labels = (("model", "bias"), ("version", "1"))

        def of(name):
            return grown.get((name, *labels), grown.get((name + "_total", *labels)))

        self.assertEqual(of("nv_inference_request_success"), 5)
        self.assertEqual(of("nv_inference_count"), 10)
        self.assertEqual(of("nv_inference_exec_count"), 5)
        for name in DURATIONS - {"nv_inference_queue_duration_us"}:
            self.assertGreaterEqual(of(name) or 0, 0, name)
        self.assertGreater(of("nv_inference_request_duration_us"), 0)
        latency = (("model", "bias"), ("outcome", "success"))
        self.assertEqual(grown[("tandem_request_latency_seconds_count", *latency)], 5)
        self.assertGreater(grown[("tandem_request_latency_seconds_sum", *latency)], 0)
        self.assertEqual(grown[("tandem_batch_size_count", ("model", "bias"))], 5)
        self.assertEqual(grown[("tandem_batch_size_sum", ("model", "bias"))], 10)
        self.assertFalse([key for key in grown if key[0].startswith("tandem_slo")],
                         "a request without a deadline counts for no SLO")

    def test_tells_how_often_the_bound_of_a_run_held(self):
        def compared(grown):
            return {
                dict(labels)["outcome"]: value for (name, *labels), value in grown.items()
                if name == "tandem_run_predicted_bound_total" and ("model", "bias") in labels
            }

        begun = time.monotonic()
        self.infer()  # From now on the bound is not old, for a second: what follows at once is compared.
        counts = compared(self.growth(lambda: [self.infer() for _ in range(20)]))
        self.assertLessEqual(set(counts), {"within", "exceeded"})
        self.assertLessEqual(sum(counts.values()), 20)
        if time.monotonic() - begun < 1:
            self.assertEqual(sum(counts.values()), 20, "each counts once")

    def test_histograms_are_whole(self):
        self.infer()
        values, _ = self.scrape()
        series = {}
        for (name, *labels), value in values.items():
            if name.endswith("_bucket"):
                labels = dict(labels)
                bound = float(labels.pop("le"))
                series.setdefault((name.removesuffix("_bucket"), *sorted(labels.items())), []).append((bound, value))
        self.assertTrue(series)
        for (name, *labels), buckets in series.items():
            buckets.sort()
            counts = [count for _, count in buckets]
            self.assertEqual(counts, sorted(counts), name)
            self.assertEqual(buckets[-1][0], float("inf"))
            self.assertEqual(counts[-1], values[(name + "_count", *labels)])

    def test_counts_failures_by_reason(self):
        def act():
            self.infer(status=400, body=b'{"inputs": []}')
            self.infer("missing", status=404)
            self.infer(status=503, X_SLO_Ms="0.001")

        grown = self.growth(act)
        outcomes = {
            dict(labels)["outcome"]: (dict(labels)["model"], value) for (name, *labels), value in grown.items()
            if name == "tandem_request_latency_seconds_count"
        }
        self.assertEqual(outcomes.get("expired"), ("bias", 1))
        self.assertEqual(
            sum(value for (name, *labels), value in grown.items()
                if name == "tandem_request_latency_seconds_count" and dict(labels)["outcome"] == "invalid"), 2)
        failures = {
            dict(labels)["reason"]: value for (name, *labels), value in grown.items()
            if name.startswith("nv_inference_request_failure") and ("model", "bias") in labels
        }
        self.assertEqual(failures, {"OTHER": 1, "REJECTED": 1})

    def test_counts_slos(self):
        def slo(grown):
            return {
                name.removeprefix("tandem_slo_").removesuffix("_total"): value
                for (name, *labels), value in grown.items() if name.startswith("tandem_slo")
            }

        self.assertEqual(slo(self.growth(lambda: self.infer(X_SLO_Ms="60000"))), {"met": 1})
        self.assertEqual(slo(self.growth(lambda: self.infer(status=503, X_SLO_Ms="0.001"))), {"rejected": 1, "missed_by_cause": 1})

        def late():
            self.assertEqual(self.send(slow_body(100_000, slo_ms=200)).status, 200)  # Begins in time, ends late.

        self.assertEqual(slo(self.growth(late)), {"missed": 1, "missed_by_cause": 1})

        client = tritonclient.grpc.InferenceServerClient(self.server.grpc)
        self.addCleanup(client.close)
        x = tritonclient.grpc.InferInput("x", [1, 256], "FP32")
        x.set_data_from_numpy(np.zeros((1, 256), np.float32))
        steps = tritonclient.grpc.InferInput("steps", [1], "INT64")
        steps.set_data_from_numpy(np.array([20_000_000]))
        expired = ("tandem_request_latency_seconds_count", ("model", "slow"), ("outcome", "expired"))

        def expires():
            # The client gives up when its own time is over: whether the server still sees the deadline pass is a race.
            before = self.scrape()[0].get(expired, 0)

            def attempt():
                with self.assertRaises(tritonclient.utils.InferenceServerException):
                    client.infer("slow", [x, steps], client_timeout=0.3)
                return self.scrape()[0].get(expired, 0) > before

            until(attempt, "a call is counted as expired")

        grown = self.growth(expires)
        self.assertEqual(slo(grown), {"missed": grown[expired], "missed_by_cause": grown[expired]})

    def test_shows_what_waits(self):
        # The first has all threads, so the others wait.
        connections = [Connection(self.server.http_port).send(slow_body(20_000_000))]
        self.server.wait_busy()
        connections += [Connection(self.server.http_port).send(slow_body(20_000_000)) for _ in range(3)]
        pending = ("nv_inference_pending_request_count", ("model", "slow"), ("version", "1"))
        until(lambda: self.scrape()[0][("tandem_queue_depth", )] == 3, "three wait")
        self.assertEqual(self.scrape()[0][pending], 3)
        for connection in connections:
            connection.close()
        until(lambda: self.scrape()[0][("tandem_queue_depth", )] == 0, "none waits")
        self.assertEqual(self.scrape()[0][pending], 0)

    def test_describes_the_process_and_the_machine(self):
        values, _ = self.scrape()
        (build, ) = [dict(labels) for (name, *labels) in values if name == "tandem_build_info"]
        self.assertRegex(build["version"], r"^\d+\.\d+\.\d+")
        self.assertRegex(build["onnxruntime"], r"^1\.\d+")
        until(lambda: self.scrape()[0][("process_threads", )] == len(self.server.thread_names()), "threads are counted")
        self.assertAlmostEqual(values[("process_resident_memory_bytes", )] / self.server.resident_bytes(), 1, delta=0.3)
        self.assertAlmostEqual(values[("process_open_fds", )], self.server.open_files(), delta=5)
        total = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) * 1024
        self.assertEqual(values[("nv_cpu_memory_total_bytes", )], total)
        self.assertTrue(0 < values[("nv_cpu_memory_used_bytes", )] < total)
        time.sleep(0.1)
        self.assertTrue(0 <= self.scrape()[0][("nv_cpu_utilization", )] <= 1)

    def test_odd_names_are_escaped(self):
        grown = self.growth(lambda: self.infer(ODD_NAME))
        models_seen = {dict(labels).get("model") for _, *labels in grown}
        self.assertIn(ODD_NAME, models_seen)

    def test_the_openapi_document_says_what_the_server_does(self):
        region = shared_memory.SharedMemory(create=True, size=64)  # The check asks for the status of one.
        self.addCleanup(region.unlink)
        self.addCleanup(region.close)
        answer = self.server.call("POST", "/v2/systemsharedmemory/region/openapi_check/register",
                                  {"key": "/" + region.name, "byte_size": 64})
        self.assertEqual(answer.status, 200, answer)
        script = ROOT / "tests/server/rest/openapi_check.py"
        done = subprocess.run([sys.executable, script, f"http://{self.server.http}", "--require-validator"],
                              capture_output=True,
                              text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
