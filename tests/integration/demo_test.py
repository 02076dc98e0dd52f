"""`tandem demo` with the real trainer: it trains under load, and says so when it cannot."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import threading
import unittest

from tandem_server import BINARY, PATIENCE, TandemTest, until

TRAINER = BINARY.parent / "tandem-trainer"
# On a machine that others keep busy an idle trainer would never get on.
SHORT = ("--seconds", "1", "--models", "squeezenet", "--training-steps", "200", "--colocation", "none", "--compare", "false")
LONGEST = 4 * PATIENCE  # Of a whole demo.


class Demo(TandemTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.settings = {key: value for key, value in os.environ.items() if not key.startswith("TANDEM_")}
        self.settings["TMPDIR"] = str(self.temporary)
        if "TANDEM_ROOT" in os.environ:  # Where the sample models lie.
            self.settings["TANDEM_ROOT"] = os.environ["TANDEM_ROOT"]

    def demo(self, *arguments, program=BINARY, code=0):
        done = subprocess.run([str(program), "demo", *map(str, arguments)],
                              capture_output=True,
                              text=True,
                              timeout=LONGEST,
                              stdin=subprocess.DEVNULL,
                              env=self.settings)
        self.assertEqual(done.returncode, code, done.stdout[-4000:] + done.stderr)
        self.assertEqual([], list(self.temporary.iterdir()), "the demo leaves nothing behind")
        return done.stdout

    def begin(self, *arguments, program=BINARY, **options):
        process = subprocess.Popen([str(program), "demo", *map(str, arguments)],
                                   text=True,
                                   stdin=subprocess.DEVNULL,
                                   env=self.settings,
                                   **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def without_trainer(self):
        """The program in a folder in which there is no trainer."""
        program = self.folder / "bin" / "tandem"
        program.parent.mkdir()
        shutil.copy(BINARY, program)
        return program

    def launcher(self, script):
        """In place of ./tandem, to which the demo says `build tandem-trainer`."""
        file = self.folder / "launcher"
        file.write_text(f'#!/bin/bash\n[[ $* == "build tandem-trainer" ]] || exit 99\ncd "{self.folder}"\n{script}\n')
        file.chmod(0o755)
        self.settings["TANDEM_LAUNCHER"] = str(file)

    def check_published(self, text):
        self.assertRegex(text, r"(?m)^Trained 200 steps beside the load.*; published as version 2 of digits\.$")
        self.assertRegex(text, r"(?m)^digits: \d+ answers by version 1, [\d.]+ % right; \d{2,} by version 2, [\d.]+ % right\.$")
        before, after = map(float, re.search(r"no job has seen: ([\d.]+) % → ([\d.]+) %", text).groups())
        self.assertLess(before, 30)
        self.assertGreater(after, before + 30)
        self.assertRegex(text.splitlines()[-1], r"^\d+\.\d\d % of \d+ requests answered within their SLO, 0 failed\.$")

    def test_trains_under_load_and_publishes(self):
        report = self.folder / "report.json"
        text = self.demo(*SHORT, "--json", report)
        self.check_published(text)
        self.assertRegex(text, r"(?m)^job 1  succeeded  200/200  .*loss .*accuracy")
        self.assertRegex(text, r"(?m)^model .*p99 ms alone  training ")
        self.assertNotIn("\033", text)
        found = json.loads(report.read_text())
        for part in ("alone", "beside_training", "after"):
            for model in found[part]["models"]:
                self.assertEqual(0, model["failed"], part)
        training = found["training"]
        self.assertEqual(("succeeded", "2", 200), (training["state"], training["published_version"], training["steps"]))
        self.assertGreater(training["accuracy_after"], training["accuracy_before"])
        self.assertEqual({"1", "2"}, set(training["versions"]))
        self.assertGreater(training["versions"]["2"]["answers"], 0)

    def test_compares_with_training_that_nobody_manages(self):
        report = self.folder / "report.json"
        text = self.demo(*SHORT[:-2], "--json", report)
        self.check_published(text)
        self.assertRegex(text, r"(?m)^model .*p99 ms alone  unmanaged  training ")
        self.assertRegex(text, r"(?m)^  alone +[█▏▎▍▌▋▊▉]+ [\d.]+ ms$")
        self.assertRegex(text, r"(?m)^  unmanaged +[█▏▎▍▌▋▊▉]+ [\d.]+ ms(, [\d.]+ training steps a second)?$")
        self.assertGreater(json.loads(report.read_text())["unmanaged"]["models"][0]["ok"], 0)

    def test_serves_while_the_trainer_is_built_and_then_trains(self):
        program = self.without_trainer()
        self.launcher(f"""echo "[1/2] Building" >&2
            until [[ -e go ]]; do sleep 0.05; done
            cp "{TRAINER}" bin/aside && mv bin/aside bin/tandem-trainer""")
        terminal, inner = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        process = self.begin(*SHORT, program=program, stdout=inner, stderr=inner)
        os.close(inner)
        seen = []

        def read():
            try:
                while piece := os.read(terminal, 4096):
                    seen.append(piece)
            except OSError:  # The other side has gone.
                pass

        reader = threading.Thread(target=read)
        reader.start()

        def text():
            return b"".join(seen).decode(errors="replace").replace("\r\n", "\n")

        until(lambda: "building the trainer: 1 of 2" in text(), "the view tells of the build")
        self.assertNotIn("Poisson", text())  # Nothing is measured beside a build.
        (self.folder / "go").touch()
        self.assertEqual(0, process.wait(LONGEST), text()[-4000:])
        reader.join(PATIENCE)
        os.close(terminal)
        self.check_published(text())
        self.assertIn("│", text())  # A table, and below it the curves.
        self.assertRegex(text(), r"accuracy  [▁▂▃▄▅▆▇█]{2,}  0\.\d+ → [01]\.\d+")

    def test_a_trainer_that_cannot_be_built_does_not_break_serving(self):
        program = self.without_trainer()
        self.launcher("""echo 'tandem: error: the build failed (preset release)' >&2
            echo '  The whole output is in /somewhere/release.build.log.' >&2
            exit 1""")
        text = self.demo(*SHORT, program=program, code=1)
        self.assertIn("Not trained: the trainer could not be built: the build failed (preset release)\n"
                      "  The whole output is in /somewhere/release.build.log.\n", text)
        self.assertRegex(text.splitlines()[-1], r"^\d+\.\d\d % of [1-9]\d* requests answered within their SLO, 0 failed\.$")

    def test_a_trainer_that_is_missing_is_named(self):
        program = self.without_trainer()
        text = self.demo(*SHORT, program=program, code=1)
        self.assertIn(f"Not trained: '{program.parent / 'tandem-trainer'}' is missing", text)
        self.assertRegex(text.splitlines()[-1], "0 failed")
        text = self.demo(*SHORT, "--trainer", "/no/such/trainer", code=1)
        self.assertIn("Not trained: '/no/such/trainer' is missing", text)

    def test_a_trainer_that_fails_is_told(self):
        broken = self.folder / "broken"
        broken.write_text("#!/bin/bash\necho out of ideas\nexit 1\n")
        broken.chmod(0o755)
        text = self.demo(*SHORT, "--trainer", broken, code=1)
        self.assertRegex(text, r"(?m)^No new version: job 1 failed: ")
        self.assertRegex(text.splitlines()[-1], "0 failed")

    def test_an_interruption_ends_the_build(self):
        program = self.without_trainer()
        self.launcher("""(while :; do sleep 0.05; done) & echo $! >pid.new && mv pid.new pid
            echo "[1/9] Building"
            wait""")
        with open(self.folder / "log", "w+") as log:
            process = self.begin(*SHORT, program=program, stdout=log, stderr=log)

            def text():
                return (self.folder / "log").read_text()

            until(lambda: "building the trainer: 1 of 9" in text(), "the demo tells of the build")
            process.send_signal(signal.SIGINT)
            self.assertEqual(130, process.wait(PATIENCE), text())
        self.assertIn("Interrupted. ", text())
        self.assertEqual([], list(self.temporary.iterdir()))
        self.wait_gone(int((self.folder / "pid").read_text()))

    def test_an_interruption_ends_the_training(self):
        with open(self.folder / "log", "w+") as log:
            process = self.begin("--seconds",
                                 "1",
                                 "--models",
                                 "squeezenet",
                                 "--training-steps",
                                 "1000000",
                                 "--colocation",
                                 "none",
                                 stdout=log,
                                 stderr=log)

            def text():
                return (self.folder / "log").read_text()

            until(lambda: re.search(r"job 1  running  [1-9]", text()), "the job has made a step")
            trainers = self.children(process.pid)
            self.assertEqual(1, len(trainers))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(143, process.wait(PATIENCE), text())
        self.assertRegex(text().splitlines()[-1], r"^Interrupted\. .* 0 failed\.$")
        self.assertEqual([], list(self.temporary.iterdir()))
        self.wait_gone(trainers[0])

    @staticmethod
    def children(pid):
        found = []
        for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in path.read_text().split()]
        return found

    @staticmethod
    def wait_gone(pid):
        def gone():
            try:  # A zombie waits for whoever inherited it.
                return ") Z " in pathlib.Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                return True

        until(gone, f"process {pid} has ended")


if __name__ == "__main__":
    unittest.main()
