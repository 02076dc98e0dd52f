"""The simulator as a person runs it: no server, no models."""
import json
import pathlib
import tempfile
import unittest

from tandem_server import ROOT, tandem

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
