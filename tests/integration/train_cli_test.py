"""`tandem train` against the real server and real trainers."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import unittest

from tandem_server import BINARY, PATIENCE, until
from training_jobs import TrainingTest, job

LONG = {"epochs": None, "steps": 1_000_000, "evaluation": None}


class TrainCli(TrainingTest):
    def setUp(self):
        super().setUp()
        self.serve()

    def command(self, *arguments):
        return [str(BINARY), "train", *map(str, arguments), "--url", f"http://{self.server.http}"]

    def train(self, *arguments, code=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def begin(self, *arguments, **options):
        """A command that is under way."""
        process = subprocess.Popen(self.command(*arguments), text=True, **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        for stream in (process.stdout, process.stderr):
            if stream:
                self.addCleanup(stream.close)
        return process

    def test_submits_by_flags_watches_and_looks_back(self):
        done = self.train("submit", "--model", "digits", "--data", "train.npz", "--epochs", 2, "--lr", 0.01,
                          "--eval-split", 0.2, "--name", "short", "--publish", "on_success", "--watch")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^job 1 \(short\) is queued$")
        self.assertRegex(lines[-1], r"^job 1 succeeded  \d+/\d+  loss \d.*  accuracy \d.*  published as version 2 of digits$")

        self.assertIn("succeeded", self.train("list").stdout)
        self.assertEqual([], json.loads(self.train("list", "--state", "running,queued", "--json").stdout)["jobs"])
        self.assertIn("digits version 1", self.train("show", 1).stdout)
        self.assertEqual("short", json.loads(self.train("show", 1, "--json").stdout)["name"])
        self.assertRegex(self.train("metrics", 1).stdout, r"(?m)^loss +\d+")
        self.assertIn("*", self.train("metrics", 1, "--plot").stdout)
        self.assertIn("STEP", self.train("checkpoints", 1).stdout)
        log = self.train("logs", 1, "--follow").stdout
        self.assertEqual(self.log(1), log)
        self.assertRegex(log, r'(?m)^\d+-\d+-\d+T\d+:\d+:\d+Z job 1 "short": model digits')
        self.assertIn("admitted → running", self.train("events", 1).stdout)
        events = [json.loads(line) for line in self.train("events", "--json").stdout.splitlines()]
        self.assertEqual([str(number) for number, _, _ in self.events(1)], [event["id"] for event in events])
        self.assertIn("served as before", self.train("rollback", 1).stdout)
        self.assertIn("published as version", self.train("publish", 1).stdout)
        file = self.folder / "result.onnx"
        self.assertIn(f"{self.result_file(1).stat().st_size} bytes", self.train("fetch", 1, "-o", file).stderr)
        self.assertEqual(self.result_file(1).read_bytes(), file.read_bytes())
        self.train("delete", 1)
        self.assertIn("no job", self.train("show", 1, code=1).stderr)

    def test_model_data_and_epochs_are_enough(self):
        done = self.train("submit", "--model", "digits", "--data", "train.npz", "--epochs", 3)
        self.assertEqual("job 1 (digits) is queued\n", done.stdout)
        done = self.wait(1, "succeeded")
        # 1000 examples, 32 at a time.
        self.assertEqual((96, 96), (done["progress"]["step"], done["progress"]["total_steps"]))
        loss = self.call("GET", "/jobs/1/metrics")["loss"]["values"]
        self.assertLess(loss[-1], loss[0])

    def test_estimates_memory_before_and_measures_it_then(self):
        flags = ["--model", "digits", "--data", "train.npz", "--epochs", 1, "--optimizer", "adam"]
        told = json.loads(self.train("estimate", *flags, "--json").stdout)
        parts = told["persistent"]
        self.assertEqual(parts["total"], sum(parts[part] for part in ("weights", "optimizer", "data", "framework")))
        # Adam keeps two numbers for each that is trained, and the blocks of small ones are rounded.
        self.assertAlmostEqual(2, parts["optimizer"] / parts["weights"], delta=0.2)
        self.assertEqual(32, told["batch"])
        self.assertGreater(told["ephemeral"], 0)
        self.assertRegex(self.train("estimate", *flags).stdout, r"(?m)^persistent +\d.*as long as it runs")
        self.assertEqual([], json.loads(self.train("list", "--json").stdout)["jobs"])
        refused = self.train("estimate", *flags, "--batch-size", 0, code=1)
        self.assertIn("/batch_size is 0", refused.stderr)
        self.assertIn("'nothing'", self.train("estimate", "--model", "nothing", "--data", "train.npz", "--epochs", 1,
                                              code=1).stderr)

        self.train("submit", *flags, "--watch")
        memory = json.loads(self.train("show", 1, "--json").stdout)["memory"]
        self.assertEqual({**told, "persistent": None}, {**memory["estimate"], "persistent": None})
        if memory["measured"]:  # Not under a sanitizer.
            self.assertLess(abs(memory["error"]["persistent"]), 0.5)
            self.assertIn("more in a step", self.train("show", 1).stdout)

    def test_a_model_that_cannot_be_fetched_leaves_the_file_alone(self):
        self.submit(**LONG)
        file = self.folder / "mine.onnx"
        file.write_text("mine")
        self.assertIn("only one that has succeeded", self.train("fetch", 1, "-o", file, code=1).stderr)
        self.assertIn("no job", self.train("fetch", 2, "-o", file, code=1).stderr)
        self.assertEqual("mine", file.read_text())
        self.train("cancel", 1)
        self.wait(self.submit(steps=1, epochs=None)["id"], "succeeded")
        for place in (self.folder, self.folder / "nowhere" / "x.onnx", "/dev/full"):
            self.assertIn(f"'{place}' cannot be written", self.train("fetch", 2, "-o", place, code=1).stderr)
        done = subprocess.run(self.command("fetch", 2, "-o", "/dev/stdout"), capture_output=True, timeout=PATIENCE)
        self.assertEqual(self.result_file(2).read_bytes(), done.stdout)
        subprocess.run(self.command("fetch", 2), check=True, capture_output=True, timeout=PATIENCE, cwd=self.folder)
        self.assertEqual(self.result_file(2).read_bytes(), (self.folder / "job-2.onnx").read_bytes())
        self.assertEqual([], [one.name for one in self.folder.iterdir() if "onnx." in one.name])

    def test_flags_override_the_file_and_a_key_makes_it_one_job(self):
        file = self.folder / "job.json"
        file.write_text(json.dumps(job(**LONG)))
        answers = [
            json.loads(
                self.train("submit", file, "--name", "other", "--lr", 0.5, "--idempotency-key", "k", "--json").stdout)
            for _ in range(2)
        ]
        self.assertEqual([1, 1], [answer["id"] for answer in answers])
        self.assertEqual("other", answers[0]["name"])
        self.assertEqual(0.5, answers[0]["job"]["optimizer"]["lr"])
        self.assertEqual(32, answers[0]["job"]["batch_size"])
        refused = self.train("submit", file, "--idempotency-key", "k", code=1)
        self.assertIn("job 1", refused.stderr)
        self.train("cancel", 1)

    def test_names_every_mistake(self):
        file = self.folder / "job.json"
        file.write_text('{"epochs": 0, "speed": 1, "optimizer": {"lr": -1}, "model": "digits", "data": "train.npz"}')
        done = self.train("submit", file, code=1)
        for pointer in ("/epochs", "/speed", "/optimizer/lr"):
            self.assertRegex(done.stderr, rf"(?m)^  {pointer} ")
        self.assertEqual("", done.stdout)
        outside = self.train("submit", "--model", "digits", "--data", "../x.npz", "--epochs", 1, code=1)
        self.assertIn("/data", outside.stderr)
        for wrong in (["submit"], ["submit", "--model", "m"], ["show"], ["show", "x"], ["show", "0"], ["list", "--limit", 0],
                      ["submit", "--epochs", 1, "--steps", 1], ["fly"]):
            self.train(*wrong, code=2)

    def test_controls_a_job_that_runs(self):
        self.submit(**LONG)
        self.wait_step(1, 3)
        self.assertIn("paused", self.train("pause", 1).stdout)
        self.assertIn("does not allow", self.train("pause", 1, code=1).stderr)
        self.train("resume", 1)
        self.assertIn("cancel it first", self.train("delete", 1, code=1).stderr)
        follower = self.begin("events", 1, "--follow", stdout=subprocess.PIPE)
        watcher = self.begin("watch", 1, stdout=subprocess.PIPE)
        self.assertIn("job 1", watcher.stdout.readline())
        self.train("cancel", 1)
        self.assertEqual(1, watcher.wait(PATIENCE))
        self.assertIn("cancelled", watcher.stdout.read())
        self.assertEqual(0, follower.wait(PATIENCE))
        self.assertIn("cancelled", follower.stdout.read())

    def test_a_terminal_sees_a_bar_and_an_interruption_leaves_the_job_running(self):
        terminal, inner = pty.openpty()
        self.addCleanup(os.close, terminal)
        # Room for everything, however many digits the steps, the rate and the ETA come to have.
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        file = self.folder / "job.json"
        file.write_text(json.dumps(job(**LONG)))
        process = self.begin("submit", file, "--watch", stdout=inner, stderr=subprocess.PIPE)
        os.close(inner)
        seen = ""

        def shown():
            nonlocal seen
            seen += os.read(terminal, 4096).decode()
            return re.search(r"\[=*>? *\] \d+/1000000.*steps/s  ETA", seen)

        until(shown, "a progress bar with a rate")
        process.send_signal(signal.SIGINT)
        self.assertEqual(130, process.wait(PATIENCE))
        self.assertIn("job 1 goes on", process.stderr.read())
        self.assertEqual("running", self.show(1)["state"])

    def test_watching_outlives_a_restart_of_the_server(self):
        self.submit(**LONG)
        self.wait_step(1, 3)
        watcher = self.begin("watch", 1, stdout=subprocess.PIPE)
        self.assertIn("job 1", watcher.stdout.readline())
        port = self.server.http_port
        self.server.stop()
        self.serve(http_port=port)
        self.wait(1, "running")
        self.train("cancel", 1)
        self.assertEqual(1, watcher.wait(PATIENCE))
        self.assertIn("job 1 cancelled", watcher.stdout.read())


if __name__ == "__main__":
    unittest.main()
