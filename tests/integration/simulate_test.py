"""The simulator as a person runs it: no server, no models, but for what was recorded of a real job."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tandem_server import ROOT, tandem
from training_jobs import TrainingTest

EXAMPLES = ROOT / "examples" / "simulate"
POLICIES = {"tandem", "none", "nice", "idle", "pause", "partition", "time_slice", "op_gate"}


class Simulate(unittest.TestCase):
    def run_command(self, *arguments, code=0):
        done = tandem("simulate", *map(str, arguments))
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        self.assertEqual(bool(done.stderr), code != 0, done.stderr)
        return done.stderr if code else done.stdout

    def test_every_example_runs_under_every_policy(self):
        files = sorted(EXAMPLES.glob("*.json"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            figures = json.loads(self.run_command(file, "--seconds", 3, "--json", "-"))
            for case in figures["cases"]:
                self.assertEqual({entry["policy"] for entry in case["policies"]}, POLICIES, file)

    def test_tables_name_what_was_asked_for(self):
        text = self.run_command(EXAMPLES / "herald.json", "--policies", "none,op_gate", "--seconds", 60)
        for word in ("VGG-16", "RNNLM", "p99 ms", "in SLO", "iterations/s", "held: requests", "op_gate", "alone"):
            self.assertIn(word, text)
        self.assertNotIn("time_slice", text)

    def test_the_same_seed_gives_the_same_figures(self):
        arguments = (EXAMPLES / "squeezenet_cpu.json", "--requests", 2000, "--json", "-")
        first = self.run_command(*arguments, "--seed", 3)
        self.assertEqual(first, self.run_command(*arguments, "--seed", 3))
        self.assertNotEqual(first, self.run_command(*arguments, "--seed", 4))

    def test_figures_go_to_a_file_beside_the_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "figures.json"
            text = self.run_command(EXAMPLES / "herald.json", "--seconds", 20, "--json", file)
            self.assertIn("p99 ms", text)
            self.assertEqual(json.loads(file.read_text())["scenario"], "herald")
            missing = pathlib.Path(folder) / "none" / "figures.json"
            self.assertIn("--json", self.run_command(EXAMPLES / "herald.json", "--seconds", 20, "--json", missing, code=2))

    def test_wrong_usage_exits_with_2(self):
        herald = EXAMPLES / "herald.json"
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.json"
            broken.write_text("{")
            wrong = pathlib.Path(folder) / "wrong.json"
            wrong.write_text('{"name": "x", "device": {"kind": "cpu", "cores": 0}}')
            for arguments, words in (((), "scenario"), ((herald, "--nonsense"), "nonsense"),
                                     ((herald, "--policies", "none,nonsense"), "known are tandem"),
                                     ((herald, "--policies", "none,none"), "twice"), ((herald, "--seconds", "0"), "--seconds"),
                                     ((herald, "--seconds", "nan"), "--seconds"), ((herald, "--seed", "-1"), "--seed"),
                                     ((herald, "--seconds", "1", "--requests", "1"), "--requests"),
                                     (("/nonexistent.json", ), "/nonexistent.json"), ((folder, ), folder),
                                     ((broken, ), "not JSON"), ((wrong, ), "/device/cores is 0")):
                self.assertIn(words, self.run_command(*arguments, code=2), arguments)


class Recorded(TrainingTest):
    """A job is recorded by one command, and simulated by another."""
    def record(self, **fields):
        """What `tandem profile JOB --json` prints of a job that has run, in a file of the folder."""
        self.serve()
        job_id = self.submit(epochs=None, **fields)["id"]
        self.wait(job_id, "succeeded")
        done = tandem("profile", job_id, "--json", "--url", f"http://{self.server.http}")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "job.json").write_text(done.stdout)
        return json.loads(done.stdout)["ops"]

    def simulate(self, trainer, code=0, **device):
        scenario = self.folder / "scenario.json"
        scenario.write_text(
            json.dumps({
                "name": "recorded",
                "seconds": 20,
                "device": {
                    "kind": "cpu",
                    "cores": 2,
                    **device
                },
                "models": [{
                    "name": "m",
                    "rate": 10,
                    "service_ms": 5
                }],
                "trainers": [{
                    "name": "t",
                    **trainer
                }]
            }))
        done = tandem("simulate", scenario, "--json", "-")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)["cases"][0] if code == 0 else done.stderr

    def test_training_alone_takes_the_time_of_its_recorded_operators(self):
        steps = 50
        ops = self.record(steps=steps, evaluation=None)
        self.assertEqual([op["count"] for op in ops if op["kind"] == "loss"], [steps])
        iteration = 0
        for op in ops:
            self.assertEqual(op["count"] % steps, 0, op)
            iteration += op["typical_ms"] if op["count"] == steps else op["total_ms"] / steps
        case = self.simulate({"profile": "job.json"})
        alone = case["training_alone"]["trainers"][0]["iterations_per_second"]
        self.assertAlmostEqual(alone * iteration / 1e3, 1, delta=0.01)
        self.assertEqual({entry["policy"] for entry in case["policies"]}, POLICIES)
        for entry in case["policies"]:
            self.assertGreater(entry["trainers"][0]["iterations_per_second"], 0, entry["policy"])
        # On another machine than it was recorded on: what a second thread had brought is lost.
        limited = self.simulate({"profile": "job.json", "speedup": 1.25}, quota_cores=1)
        slower = limited["training_alone"]["trainers"][0]["iterations_per_second"]
        self.assertAlmostEqual(slower * 1.25 * iteration / 1e3, 1, delta=0.01)

    def test_evaluations_are_part_of_what_training_takes(self):
        ops = self.record(steps=40, evaluation={"split": 0.2, "every_steps": 10})
        iterations = sum(op["count"] for op in ops if op["kind"] == "loss")
        self.assertEqual(iterations, 40)
        self.assertTrue(any(op["count"] % iterations for op in ops), "evaluations run the model, too")
        longest = sum(max(op["typical_ms"] * op["count"], op["total_ms"]) for op in ops) / iterations
        shortest = sum(min(op["typical_ms"] * op["count"], op["total_ms"]) for op in ops) / iterations
        alone = self.simulate({"profile": "job.json"})["training_alone"]["trainers"][0]["iterations_per_second"]
        self.assertLessEqual(1e3 / alone, longest * 1.01)
        self.assertGreaterEqual(1e3 / alone, shortest * 0.99)

    def test_mistakes_are_told(self):
        self.assertIn('/trainers/0/profile is "none.json", but', self.simulate({"profile": "none.json"}, code=2))
        (self.folder / "job.json").write_text('{"ops": [{"kind": "Conv", "count": -1}]}')
        told = self.simulate({"profile": "job.json"}, code=2)
        self.assertIn('/trainers/0/profile is "job.json", in which /ops/0/count is -1', told)
        self.assertIn("/ops/0/typical_ms is missing", told)


def measured(cell, p99, training):
    """The rows of a cell, as `tandem bench colocation --json` has them."""
    return [{
        "metric": metric,
        "cell": f"squeezenet beside squeezenet, {cell}",
        "value": value,
        "low": None if value is None else 0.9 * value,
        "high": None if value is None else 1.1 * value
    } for metric, value in (("p99 beside training ÷ alone", p99), ("training ÷ what is left of it alone", training))]


def simulated(policy, p99, training):
    return {"policy": policy, "models": [{"p99_ms": p99}], "trainers": [{"of_what_is_left": training}]}


class Comparison(unittest.TestCase):
    """examples/simulate/compare.py, which writes the table of docs/simulator.md."""
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rows = [
            *measured("load 0.3, none", 4, 0.8), *measured("load 0.3, idle", 1.1, 0.9), *measured("load 0.5, idle", None, None),
            *measured("load 0.3, quota of 1 core, idle", 3, 1.06), {
                "metric": "p99 alone",
                "cell": "squeezenet beside squeezenet, load 0.3",
                "value": 0.01,
                "low": 0.01,
                "high": 0.01
            }
        ]
        alone = {"models": [{"p99_ms": 10}]}
        self.cases = [{
            "name": "load 0.3",
            "requests_alone": alone,
            "policies": [simulated("idle", 10, 0.9), simulated("none", 50, 0.7),
                         simulated("time_slice", 1, 1)]
        }, {
            "name": "load 0.5",
            "requests_alone": alone,
            "policies": [simulated("idle", 10, 1)]
        }, {
            "name": "load 0.3, quota of 1 core",
            "requests_alone": alone,
            "policies": [simulated("idle", 30, 1)]
        }]

    def compare(self, *more, code=0, **texts):
        contents = {
            "measured": json.dumps({"rows": self.rows}),
            "simulated": json.dumps({"cases": self.cases}),
            **texts
        }
        for name, text in contents.items():
            (self.folder / f"{name}.json").write_text(text)
        done = subprocess.run([
            sys.executable, EXAMPLES / "compare.py", self.folder / "measured.json", self.folder / "simulated.json", *more
        ],
                              capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def test_rows_are_those_that_both_have_in_the_order_of_the_measurement(self):
        lines = self.compare().splitlines()
        self.assertEqual(lines[2:5], [
            "| load 0.3 | none | 5 | 4 (3.6 – 4.4) | **+25 %** | 0.7 | 0.8 (0.72 – 0.88) | −13 % |",
            "| load 0.3 | idle | 1 | 1.1 (0.99 – 1.21) | −9 % | 0.9 | 0.9 (0.81 – 0.99) | +0 % |",
            "| load 0.3, quota of 1 core | idle | 3 | 3 (2.7 – 3.3) | +0 % | 1 | 1.06 (0.954 – 1.17) | −6 % |"
        ])
        self.assertEqual(lines[-1], "5 of 6 figures are within 15 %: 3 of 4 at load 0.3, 2 of 2 at load 0.3, quota of 1 core.")

    def test_another_bound_and_other_cells(self):
        self.assertIn("6 of 6 figures are within 30 %", self.compare("--within", "30"))
        for row in self.rows:
            row["cell"] = row["cell"].replace("squeezenet beside squeezenet", "resnet50 beside squeezenet")
        self.assertIn("no figure of", self.compare(code=2))
        self.assertIn("5 of 6", self.compare("--cells", "resnet50 beside squeezenet"))

    def test_mistakes_are_told(self):
        self.assertIn("measured.json", self.compare(measured="{", code=2))
        self.assertIn("measured.json", self.compare(measured="[]", code=2))
        self.assertIn("simulated.json", self.compare(simulated='{"cases": [{}]}', code=2))

    def test_what_the_simulator_writes_is_read(self):
        done = tandem("simulate", EXAMPLES / "squeezenet_cpu.json", "--seconds", 1, "--json", self.folder / "real.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of 6 figures", self.compare(simulated=(self.folder / "real.json").read_text()))
