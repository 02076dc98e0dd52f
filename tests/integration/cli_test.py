"""The commands that a person types, against a server that runs."""
import http.server
import json
import os
import signal
import subprocess
import tempfile
import threading

import numpy as np

import models
from tandem_server import BINARY, PATIENCE, SharedServerTest, tandem, until

COMMANDS = [(), ("serve", ), ("demo", ), ("models", ), ("models", "list"), ("models", "show"), ("models", "load"),
            ("models", "unload"), ("infer", ), ("loadgen", ), ("loadgen", "compare"), ("loadgen", "convert"), ("simulate", ),
            ("doctor", ), ("version", ), ("train", ), ("train", "turns"), ("profile", ), ("trace", ),
            *(("train", name)
              for name in ("submit", "list", "show", "pause", "resume", "cancel", "publish", "rollback", "delete", "logs",
                           "events", "checkpoints", "metrics", "watch"))]


class Cli(SharedServerTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*")

    @classmethod
    def fill(cls, repository):
        for name in ("bias", "add_sub", "reciprocal"):
            models.place(repository, name, getattr(models, name)())
        models.place(repository, "spare näme", models.bias(2))
        models.place(repository, "text", models.identity("BYTES", ["n"]))
        models.place(repository, "half", models.identity("FP16"))
        models.place(repository, "cube", models.identity("FP32", [1, 2, 2, 2]))
        models.place(repository,
                     "optional",
                     models.optional_bias(),
                     config="""
            input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] }
            input { name: "bias" data_type: TYPE_FP32 dims: 4 optional: true }""")
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
            self.assertIn("xample", done.stdout, command)
        self.assertIn("--model-repository", tandem("serve", "--help").stdout)

    def test_wrong_usage_exits_with_2_before_any_server_is_asked(self):
        nowhere = ("--url", "http://127.0.0.1:1")
        for arguments in ((), ("nonsense", ), ("--nonsense", ), ("infer", ), ("models", ), ("models", "nonsense"),
                          ("models", "show"), ("infer", "bias", "--nonsense"), ("version", "extra"),
                          ("infer", "bias", "--timeout", "-1"), ("demo", "--seconds", "0"), ("infer", "bias", "--top", "0"),
                          ("infer", "bias", "--slo-ms", "-1"), ("infer", "bias", "--slo-ms", "0"),
                          ("infer", "bias", "--timeout", "nan"), ("infer", "bias", "--slo-ms", "nan"),
                          ("models", "list", "--timeout", "nan"), ("demo", "--seconds", "nan"), ("demo", "--load", "nan"),
                          ("demo", "--training-steps", "0"), ("demo", "--training", "maybe"),
                          ("infer", "bias", "--top", "1.5")):
            done = tandem(*arguments)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout} {done.stderr}")
            self.assertTrue(done.stderr or done.stdout)
        self.assertIn("--top: '-1' is not a number from 1 to ", tandem("infer", "bias", "--top", "-1").stderr)
        for arguments in (("--input", "foo"), ("--input", "x=[1"), ("--input", "x="), ("--input", "=1"),
                          ("--input", "x=" + "[" * 5000), ("--input", "x=1", "--input", "x=2"), ("--shape", "x"),
                          ("--shape", "x:1,a"), ("--shape", "x:-1"), ("--shape", "x:1", "--shape", "x:2")):
            done = tandem("infer", "bias", *arguments, *nowhere)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr}")
            self.assertIn(arguments[0], done.stderr)
        for url in ("nonsense", "ftp://localhost", "http://", "http://localhost:", "http://localhost:99999", "http://:8000",
                    "http://localhost:8000/v2"):
            for command in (("models", "list"), ("infer", "bias")):
                done = tandem(*command, "--url", url)
                self.assertEqual(done.returncode, 2, f"{url}: {done.stderr}")
                self.assertIn("--url", done.stderr)

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
                         {"bias", "add_sub", "reciprocal", "spare näme", "text", "half", "cube", "optional", "squeezenet",
                          "broken"})

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
        for action, state in (("unload", "UNAVAILABLE"), ("load", "READY")):
            (entry, ) = json.loads(self.run_command("models", action, "spare näme", "--json"))
            self.assertEqual((entry["name"], entry["version"], entry["state"]), ("spare näme", "1", state))

    def test_infers_from_random_inputs(self):
        text = self.run_command("infer", "squeezenet", "--top", "3")
        self.assertIn("softmaxout_1", text)
        again = [self.run_command("infer", "squeezenet", "--seed", "5", "--json") for _ in range(2)]
        self.assertEqual(json.loads(again[0])["outputs"], json.loads(again[1])["outputs"])
        shaped = json.loads(self.run_command("infer", "bias", "--shape", "x:3,4", "--json"))
        self.assertEqual(shaped["outputs"][0]["shape"], [3, 4])
        differences = json.loads(self.run_command("infer", "add_sub", "--output", "difference", "--json"))
        self.assertTrue(any(differences["outputs"][0]["data"]), "both inputs have the same values")

    def test_half_precision(self):
        given = self.run_command("infer", "half", "--input", "x=[[1.5, -2, 65504, 0.1]]")
        self.assertIn("FP16 [1,4]\n  1.5 -2 65504 0.099975586\n", given)
        answer = json.loads(self.run_command("infer", "half", "--shape", "x:2,3", "--json"))
        (output, ) = answer["outputs"]
        self.assertEqual((output["datatype"], output["shape"], len(output["data"])), ("FP16", [2, 3], 6))

    def test_optional_inputs_are_left_out_unless_given(self):
        answer = json.loads(self.run_command("infer", "optional", "--input", "x=[0, 0, 0, 0]", "--json"))
        self.assertEqual(answer["outputs"][0]["data"], [1, 2, 3, 4])
        answer = json.loads(
            self.run_command("infer", "optional", "--input", "x=[0, 0, 0, 0]", "--input", "bias=[5, 6, 7, 8]", "--json"))
        self.assertEqual(answer["outputs"][0]["data"], [5, 6, 7, 8])

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
        answer = json.loads(self.run_command("infer", "cube", "--input", "x=[1, 2, 3, 4, 5, 6, 7, 8]", "--json"))
        self.assertEqual((answer["outputs"][0]["shape"], answer["outputs"][0]["data"]), ([1, 2, 2, 2], [*range(1, 9)]))
        self.assertIn("  0.1 1e-10 16777216 -3\n",
                      self.run_command("infer", "cube", "--input", "x=[0.1,1e-10,16777216,-3,0,0,0,0]").replace(
                          " 0 0 0 0", ""))
        self.assertIn("'z'", self.run_command("infer", "bias", "--input", "z=[1]", code=2))
        self.assertIn("'z'", self.run_command("infer", "bias", "--shape", "z:1", code=2))
        self.assertIn("'z'", self.run_command("infer", "bias", "--output", "z", code=2))
        for wrong in ("x=[[1, 2], [3]]", "x=[1, 2, 3, 4, 5]", "x={}", 'x=["a", "b", "c", "d"]'):
            self.run_command("infer", "bias", "--input", wrong, code=2)
        self.assertIn("[2,3]", self.run_command("infer", "bias", "--shape", "x:2,3", code=1))
        self.assertIn("missing", self.run_command("infer", "missing", code=1))
        self.assertIn("9", self.run_command("infer", "bias", "--model-version", "9", code=1))
        self.run_command("infer", "bias", "--model-version", "1", "--slo-ms", "60000")

    def test_says_when_no_server_answers(self):
        for arguments in (("models", "list"), ("infer", "bias")):
            done = tandem(*arguments, "--url", "http://127.0.0.1:1", "--timeout", "5")
            self.assertEqual(done.returncode, 1)
            self.assertIn("127.0.0.1:1", done.stderr)
        done = tandem("models", "list", environment={"TANDEM_URL": f"http://{self.server.http}"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        url = f"http://{self.server.http}"
        for command in ("version", "doctor", "serve --help", f"models list --url {url}", f"models show bias --url {url}",
                        f"models list --json --url {url}", f"infer bias --url {url}", f"infer bias --json --url {url}"):
            for target in (">/dev/full", ">&-"):
                done = subprocess.run(["sh", "-c", f'exec "$0" {command} {target}', BINARY],
                                      capture_output=True,
                                      text=True,
                                      timeout=PATIENCE)
                self.assertEqual(done.returncode, 1, f"{command} {target}: {done.stderr}")
                self.assertIn("output could not be written", done.stderr)

    def test_an_answer_that_is_none_of_a_model_servers_is_told(self):
        class Answers(http.server.BaseHTTPRequestHandler):
            body = b""

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(self.body)))
                self.end_headers()
                self.wfile.write(self.body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
            self.addCleanup(server.shutdown)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for body in (b"", b"1", b"null", b'"x"', b"{}", b"[1]", b"[{}]", b'[{"name": 1}]', b'[{"name": "a", "state": {}}]',
                         b'{"name": "a", "versions": [{}]}', b'{"name": "a", "inputs": 3}', b"<html>", b"[" * 5000,
                         b'{"name": "a", "inputs": [{"name": {}, "datatype": [], "shape": "x"}], "outputs": []}'):
                Answers.body = body
                for command in (("models", "list"), ("models", "list", "--json"), ("models", "show", "a"), ("infer", "a"),
                                ("models", "load", "a", "--json")):
                    done = tandem(*command, "--url", f"http://127.0.0.1:{server.server_port}", "--timeout", "20")
                    self.assertEqual(done.returncode, 1, f"{command} {body[:80]}: {done.stdout} {done.stderr}")
                    self.assertRegex(done.stderr, r"^tandem (models|infer): the server.*\n$", f"{command} {body[:80]}")
                    self.assertEqual(done.stdout, "")

    def demo(self, *arguments, **options):
        return tandem("demo", *arguments, environment={"TMPDIR": str(self.folder)}, timeout=2 * PATIENCE, **options)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_demo_cleans_up(self):
        report = self.folder / "report.json"
        done = self.demo("--training", "false", "--seconds", "2", "--models", "squeezenet", "--json", report)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (model, ) = json.loads(report.read_text())["models"]
        self.assertGreater(model["ok"], 0)
        self.assertEqual(self.files(), ["report.json"])

    def test_demo_asks_the_server_to_keep_the_slo(self):
        # Far more than the device can do: what cannot be answered in time is refused, since the server knows the SLO.
        report = self.folder / "report.json"
        self.demo("--training", "false", "--seconds", "3", "--load", "8", "--models", "squeezenet", "--json", report)
        (model, ) = json.loads(report.read_text())["models"]
        self.assertGreater(model["rejected"], 0, model)
        self.assertEqual(model["failed"], 0, model)

    def test_demo_refuses_what_it_cannot_do_at_once(self):
        done = self.demo("--json", self.folder / "absent" / "report.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent/report.json", done.stderr)
        self.assertEqual(done.stdout, "")
        done = self.demo("--models", "nonsense", "--json", self.folder / "report.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonsense", done.stderr)
        self.assertEqual(self.files(), [])

    def test_demo_ends_in_good_order_when_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for when, moment in (("loading", lambda _: bool(self.files())), ("in time", lambda log: "Poisson" in log)):
                with self.subTest(signal=number.name, when=when):
                    log = tempfile.TemporaryFile("w+")
                    process = subprocess.Popen([BINARY, "demo", "--seconds", "60"],
                                               stdout=log,
                                               stderr=log,
                                               env={**os.environ, "TMPDIR": str(self.folder)})
                    self.addCleanup(process.kill)

                    def text():
                        return os.pread(log.fileno(), 1 << 20, 0).decode()

                    until(lambda: moment(text()), "the demo is that far")
                    process.send_signal(number)
                    self.assertEqual(process.wait(PATIENCE), 128 + number)
                    self.assertRegex(text(), "(?i)interrupted")
                    self.assertEqual(self.files(), [])
