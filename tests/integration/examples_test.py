"""The examples of fine-tuning, run as their readers would: against the real server, with Debian's own packages."""
import os
import re
import subprocess

from certificates import Certificates
from tandem_server import PATIENCE, ROOT
from training_jobs import TrainingTest

# TANDEM_ROOT is set where the environment's packages lie in another root. Not the Python of these tests, which has packages of
# its own.
PYTHON = os.environ.get("TANDEM_ROOT", "") + "/usr/bin/python3"


class ExampleTest(TrainingTest):
    def run_example(self, name, *arguments, code=0):
        done = subprocess.run([PYTHON, ROOT / "examples" / name, *map(str, arguments)],
                              capture_output=True,
                              text=True,
                              timeout=4 * PATIENCE,
                              env={
                                  **os.environ, "OMP_NUM_THREADS": "1"
                              })
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def right(self, text, version):
        """How many of a hundred examples a version got right, as the example says it."""
        return float(re.search(rf"version {version} of \w+: ([\d.]+)% of", text)[1])


class Requests(ExampleTest):
    def finetune(self, *arguments, **options):
        return self.run_example("finetune_requests.py", "--url", f"http://{self.server.http}", "--model", "digits",
                                *arguments, **options)

    def test_makes_data_trains_publishes_and_asks_the_new_version(self):
        self.serve()
        text = self.finetune("--data", "made.npz", "--data-root", self.data, "--epochs", 3)
        self.assertTrue((self.data / "made.npz").exists())
        self.assertRegex(text, r"step \d+  evaluation: loss \d.*  accuracy \d")
        self.assertIn("published as version 2 of digits", text)
        self.assertLess(self.right(text, 1), 50)
        self.assertGreater(self.right(text, 2), 90)

    def test_takes_data_that_is_there_and_rolls_back(self):
        self.serve()
        text = self.finetune("--data", "train.npz", "--key", "once", "--roll-back")
        self.assertIn("rolled back: version 1 of digits is served", text)
        before = self.accuracy()
        self.assertLess(before, 0.5)
        # The same key is the same job.
        self.assertIn("job 1 trains", self.finetune("--data", "train.npz", "--key", "once"))
        self.assertEqual(len(self.call("GET", "/jobs")["jobs"]), 1)
        self.assertGreater(self.accuracy(), 0.9)

    def test_speaks_tls_and_shows_its_token(self):
        certificates = Certificates(self.folder)
        (self.folder / "tokens").write_text("open-sesame\n")
        server = self.serve("--tls-cert", certificates["server.pem"], "--tls-key", certificates["server.key"], "--token-file",
                            self.folder / "tokens", tls=True)
        arguments = ("--url", f"https://{server.http}", "--ca", certificates["ca.pem"], "--data", "train.npz", "--epochs", 1)
        self.assertIn("published as version 2", self.finetune(*arguments, "--token", "open-sesame"))
        self.assertIn("a valid bearer token is needed", self.finetune(*arguments, code=1))

    def test_names_every_problem(self):
        self.serve()
        text = self.finetune("--data", "train.npz", "--epochs", 0, "--job", '{"batch_size": 0, "colour": "red"}', code=1)
        for pointer in ("/epochs", "/batch_size", "/colour"):
            self.assertRegex(text, rf"(?m)^  {pointer} ")
        self.assertIn("gone.npz", self.finetune("--data", "gone.npz", code=1))
        text = self.finetune("--data", "train.npz", "--job", '{"trainable": ["w9*"]}', code=1)
        self.assertRegex(text, r"job \d+ is failed: .*w9")
        self.assertEqual(self.server.call("GET", "/v2/models/digits").json()["versions"], ["1"])


class Torch(ExampleTest):
    def finetune(self, *arguments, **options):
        return self.run_example("finetune_torch.py", "--url", f"http://{self.server.http}", "--repository", self.repository,
                                "--data-root", self.data, *arguments, **options)

    def right(self, text, which):
        return float(re.search(rf"the module {which}: ([\d.]+)% right", text)[1])

    def test_a_module_is_served_trained_and_comes_back(self):
        self.serve("--model-control-mode", "explicit")
        text = self.finetune("--epochs", 3)
        self.assertLess(self.right(text, "as it is made"), 50)
        self.assertGreater(self.right(text, "with the trained weights"), 90)
        self.assertLess(float(re.search(r"version 2 on the server and the module differ by (\S+) at most", text)[1]), 1e-3)
        self.assertEqual(self.server.call("GET", "/v2/models/patterns").json()["versions"], ["2"])

    def test_a_server_that_polls_finds_the_module_by_itself(self):
        self.serve("--model-control-mode", "poll", "--repository-poll-secs", 1)
        text = self.finetune("--model", "found", "--epochs", 1)
        self.assertIn("waiting for the server to find the model\nfound is served", text)
        self.assertIn("version 2 on the server", text)

    def test_a_server_that_loads_nothing_later_is_told_so(self):
        self.serve()
        self.assertIn("--model-control-mode explicit", self.finetune(code=1))
