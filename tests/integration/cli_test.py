"""The commands that a person types, against a server that runs."""
import json

import numpy as np

import models
from tandem_server import SharedServerTest, tandem

COMMANDS = [(), ("serve", ), ("demo", ), ("models", ), ("models", "list"), ("models", "show"), ("models", "load"),
            ("models", "unload"), ("infer", ), ("doctor", ), ("version", )]


class Cli(SharedServerTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*")

    @classmethod
    def fill(cls, repository):
        for name in ("bias", "add_sub", "reciprocal"):
            models.place(repository, name, getattr(models, name)())
        models.place(repository, "spare näme", models.bias(2))
        models.place(repository, "text", models.identity("BYTES", ["n"]))
        models.place(repository, "squeezenet", models.LIGHT_MODELS / "light_squeezenet.onnx")
        models.place(repository, "broken", models.bias()).write_bytes(b"nonsense")

    def run_command(self, *arguments, code=0):
        done = tandem(*arguments, "--url", f"http://{self.server.http}")
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        self.assertEqual(done.stderr if code == 0 else "", "")
        return done.stdout if code == 0 else done.stderr

    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            done = tandem(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            if len(command) < 2:
                self.assertIn("xample", done.stdout, command)
        self.assertIn("--model-repository", tandem("serve", "--help").stdout)

    def test_wrong_usage_exits_with_2(self):
        for arguments in ((), ("nonsense", ), ("--nonsense", ), ("infer", ), ("models", ), ("models", "nonsense"),
                          ("models", "show"), ("infer", "bias", "--nonsense"), ("version", "extra"),
                          ("infer", "bias", "--timeout", "-1"), ("demo", "--seconds", "0"), ("infer", "bias",
                                                                                             "--slo-ms", "-1")):
            done = tandem(*arguments)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout} {done.stderr}")
            self.assertTrue(done.stderr or done.stdout)

    def test_version_and_doctor(self):
        self.assertRegex(tandem("version").stdout, r"^tandem \d+\.\d+\.\d+\n$")
        done = tandem("doctor")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("tandem", "cores", "quota", "memory", "ONNX Runtime", "CPU", "CUDA", "TensorRT"):
            self.assertIn(word, done.stdout)
        done = tandem("doctor", "--ort-library", "/nonexistent/lib.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/lib.so", done.stdout + done.stderr)

    def test_lists_models(self):
        text = self.run_command("models", "list")
        rows = {line.split("  ")[0].strip(): line for line in text.splitlines()[1:]}
        self.assertIn("READY", rows["bias"])
        self.assertIn("UNAVAILABLE", rows["broken"])
        self.assertIn("ONNX", rows["broken"])
        entries = json.loads(self.run_command("models", "list", "--json"))
        self.assertEqual({entry["name"] for entry in entries},
                         {"bias", "add_sub", "reciprocal", "spare näme", "text", "squeezenet", "broken"})

    def test_shows_a_model(self):
        text = self.run_command("models", "show", "add_sub")
        for word in ("add_sub", "onnxruntime_onnx", "difference", "INT32", "-1,16"):
            self.assertIn(word, text)
        shown = json.loads(self.run_command("models", "show", "add_sub", "--json"))
        self.assertEqual((shown["name"], shown["config"]["name"]), ("add_sub", "add_sub"))
        self.assertIn("missing", self.run_command("models", "show", "missing", code=1))

    def test_loads_and_unloads(self):
        self.run_command("models", "unload", "spare näme")
        self.assertEqual(self.server.call("GET", "/v2/models/spare%20n%C3%A4me/ready").status, 503)
        self.run_command("models", "load", "spare näme")
        self.assertEqual(self.server.call("GET", "/v2/models/spare%20n%C3%A4me/ready").status, 200)
        self.assertIn("ONNX", self.run_command("models", "load", "broken", code=1))
        self.assertIn("missing", self.run_command("models", "load", "missing", code=1))

    def test_infers_from_random_inputs(self):
        text = self.run_command("infer", "squeezenet", "--top", "3")
        self.assertIn("softmaxout_1", text)
        again = [self.run_command("infer", "squeezenet", "--seed", "5", "--json") for _ in range(2)]
        self.assertEqual(json.loads(again[0])["outputs"], json.loads(again[1])["outputs"])
        shaped = json.loads(self.run_command("infer", "bias", "--shape", "x:3,4", "--json"))
        self.assertEqual(shaped["outputs"][0]["shape"], [3, 4])

    def test_infers_from_files(self):
        random = np.random.default_rng(3)
        values = {name: random.integers(-99, 99, (2, 16), np.int32) for name in ("a", "b")}
        arguments = []
        for name, value in values.items():
            np.save(self.folder / f"{name}.npy", value)
            arguments += ["--input", f"{name}=@{self.folder / name}.npy"]
        answer = json.loads(self.run_command("infer", "add_sub", *arguments, "--output", "difference", "--json"))
        (output, ) = answer["outputs"]
        self.assertEqual((output["shape"], output["data"]), ([2, 16], (values["a"] - values["b"]).ravel().tolist()))
        fortran = np.asfortranarray(values["a"])
        np.save(self.folder / "a.npy", fortran)
        done = tandem("infer", "add_sub", *arguments, "--json", "--url", f"http://{self.server.http}")
        if done.returncode == 0:  # Refused, or read in the right order.
            self.assertEqual(
                json.loads(done.stdout)["outputs"][0]["data"], (values["a"] + values["b"]).ravel().tolist())
        np.save(self.folder / "a.npy", values["a"].astype(np.float32))
        self.assertIn("'a'", self.run_command("infer", "add_sub", *arguments, code=1))
        (self.folder / "a.npy").write_bytes(b"no array")
        self.assertIn("a.npy", self.run_command("infer", "add_sub", *arguments, code=1))
        (self.folder / "a.npy").unlink()
        self.assertIn("a.npy", self.run_command("infer", "add_sub", *arguments, code=1))

    def test_infers_from_the_command_line(self):
        answer = json.loads(self.run_command("infer", "bias", "--input", "x=[[1, 2, 3, 4.5]]", "--json"))
        self.assertEqual(answer["outputs"][0]["data"], [2, 3, 4, 5.5])
        self.assertIn("hello", self.run_command("infer", "text", "--input", 'x=["hello", "wörld"]'))
        self.run_command("infer", "reciprocal", "--input", "x=[0, 1, 2, 4]")
        self.assertIn("'z'", self.run_command("infer", "bias", "--input", "z=[1]", code=1))
        for wrong in ("x=[1", "x=", "=1", "x", "x=[[1, 2], [3]]", "x=[1, 2, 3, 4, 5]", "x={}", 'x=["a", "b", "c", "d"]',
                      "x=" + "[" * 5000):
            self.run_command("infer", "bias", "--input", wrong, code=1)
        self.assertIn("missing", self.run_command("infer", "missing", code=1))
        self.assertIn("9", self.run_command("infer", "bias", "--model-version", "9", code=1))
        self.run_command("infer", "bias", "--model-version", "1", "--slo-ms", "60000")

    def test_says_when_no_server_answers(self):
        for arguments in (("models", "list"), ("infer", "bias")):
            done = tandem(*arguments, "--url", "http://127.0.0.1:1", "--timeout", "5")
            self.assertEqual(done.returncode, 1)
            self.assertIn("127.0.0.1:1", done.stderr)
            done = tandem(*arguments, "--url", "nonsense")
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("--url", done.stderr)
        done = tandem("models", "list", environment={"TANDEM_URL": f"http://{self.server.http}"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_demo_cleans_up(self):
        report = self.folder / "report.json"
        done = tandem("demo",
                      "--seconds",
                      "2",
                      "--models",
                      "squeezenet",
                      "--json",
                      report,
                      environment={"TMPDIR": str(self.folder)},
                      timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(report.read_text()))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.json"])
