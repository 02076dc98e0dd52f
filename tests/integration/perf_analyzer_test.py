"""The real perf_analyzer, out of tritonclient's wheel, measures the server in all the ways it has."""
import csv
import os
import pathlib
import subprocess

import models
from tandem_server import PATIENCE, ROOT, SharedServerTest

FOLDER = pathlib.Path(os.environ.get("PERF_ANALYZER", ROOT / "no-perf-analyzer"))


class PerfAnalyzer(SharedServerTest):
    @classmethod
    def fill(cls, repository):
        models.place(repository, "mlp", models.mlp())
        models.place(repository, "add_sub", models.add_sub())
        models.place(repository, "plain", models.reciprocal())  # Has no batch dimension.

    @classmethod
    def setUpClass(cls):
        programs = sorted(FOLDER.glob("*/data/bin/perf_analyzer"))
        if not programs:
            raise AssertionError(f"{FOLDER} holds no perf_analyzer; use tests/integration/run.sh, which fetches it")
        cls.program = programs[0]
        libraries = {str(path.parent) for path in FOLDER.rglob("libcudart.so.12")}
        cls.environment = os.environ | {"LD_LIBRARY_PATH": ":".join(libraries)}
        super().setUpClass()

    def measure(self, model, *options, protocol="http"):
        """Runs it for a short while; the columns of its report."""
        report = self.folder / "report.csv"
        url = self.server.grpc if protocol == "grpc" else self.server.http
        before = int(self.server.statistics(model)["inference_count"])
        command = [
            self.program, "-m", model, "-u", url, "-i", protocol, "--measurement-mode", "count_windows",
            "--measurement-request-count", "20", "--stability-percentage", "999", "--max-trials", "20", "-f", report,
            *options
        ]
        done = subprocess.run([str(part) for part in command],
                              capture_output=True,
                              text=True,
                              env=self.environment,
                              timeout=2 * PATIENCE,
                              cwd=self.folder,
                              stdin=subprocess.DEVNULL)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, output)
        for word in ("Failed", "failed", "error:", "Error"):
            self.assertNotIn(word, output)
        with open(report, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertTrue(rows, output)
        for row in rows:
            self.assertGreater(float(row["Inferences/Second"]), 0, output)
            self.assertGreaterEqual(float(row["Server Compute Infer"]), 0)
        self.assertGreaterEqual(int(self.server.statistics(model)["inference_count"]) - before, 20)
        return rows

    def test_measures_over_http_and_grpc(self):
        for protocol in ("http", "grpc"):
            for mode in ("--sync", "--async"):
                with self.subTest(protocol=protocol, mode=mode):
                    self.measure("mlp", mode, "--concurrency-range", "4", protocol=protocol)

    def test_measures_with_shared_memory(self):
        for protocol in ("http", "grpc"):
            for mode in ("--sync", "--async"):
                with self.subTest(protocol=protocol, mode=mode):
                    self.measure("add_sub",
                                 mode,
                                 "--shared-memory",
                                 "system",
                                 "--output-shared-memory-size",
                                 "4096",
                                 "--concurrency-range",
                                 "2",
                                 protocol=protocol)
        self.assertEqual(self.server.call("GET", "/v2/systemsharedmemory/status").json(), [], "regions are left behind")

    def test_measures_batches_and_a_model_without(self):
        for protocol in ("http", "grpc"):
            self.measure("mlp", "-b", "8", protocol=protocol)
            self.measure("plain", protocol=protocol)

    def test_measures_over_a_stream(self):
        self.measure("mlp", "--async", "--streaming", "--concurrency-range", "4", protocol="grpc")

    def test_measures_at_a_rate_and_reads_the_metrics(self):
        self.measure("mlp", "--request-rate-range", "50", "--collect-metrics", "--metrics-url",
                     f"127.0.0.1:{self.server.metrics_port}/metrics")

    def test_sends_what_a_file_holds(self):
        data = self.folder / "data.json"
        data.write_text('{"data": [{"x": [%s]}, {"x": [%s]}]}' %
                        (",".join("1.5" for _ in range(64)), ",".join("-2.5" for _ in range(64))))
        for protocol in ("http", "grpc"):
            self.measure("mlp", "--input-data", data, "--shape", "x:64", protocol=protocol)
