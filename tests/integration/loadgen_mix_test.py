"""Load on several models in one run, batches, traces with sizes, and answers that are checked under load."""
import csv
import json

import numpy as np

import models
from tandem_server import TandemTest, tandem

GENEROUS = 20000


class Mix(TandemTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "models"
        self.repository.mkdir()
        models.place(self.repository, "bias", models.bias())
        models.place(self.repository, "mlp", models.mlp())
        models.place(self.repository, "reciprocal", models.reciprocal())

    def serve(self, *flags):
        self.server = self.start(self.repository, *flags)
        return ("--url", f"http://{self.server.http}")

    def spec(self, models, **common):
        file = self.folder / "mix.json"
        file.write_text(json.dumps({"duration": 1, "warmup": 0, **common, "models": models}))
        return file

    def run_load(self, *arguments, codes=(0, 3)):
        """A run and its report. On a machine that is busy itself a run is invalid, which is seldom the matter here."""
        file = self.folder / "report.json"
        done = tandem("loadgen", *arguments, "--json", file)
        self.assertIn(done.returncode, codes, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return json.loads(file.read_text()), done

    def rows(self, model):
        """Rows of all batches that the server computed for the model."""
        return self.server.statistics(model)["inference_count"]

    # ------------------------------------------------------------------ mixes

    def test_every_model_has_its_own_load(self):
        url = self.serve()
        requests = self.folder / "requests.csv"
        spec = self.spec([{"model": "bias", "rate": 100, "slo_ms": GENEROUS, "batch": 8, "priority": 1},
                          {"model": "mlp", "users": 2, "format": "json", "version": "1"},
                          {"name": "urgent", "model": "bias", "arrivals": "constant", "rate": 50, "slo_ms": GENEROUS,
                           "inputs": {"x": [1, 2, 3, 4]}},
                          {"model": "reciprocal", "arrivals": "steps:20x0.5,40x0.5", "inputs": {"x": {"random": 5}}}])
        report, done = self.run_load("--spec", spec, "--csv", requests, *url)
        loads = {model["name"]: model for model in report["models"]}
        self.assertEqual(list(loads), ["bias", "mlp", "urgent", "reciprocal"])
        for name, load in loads.items():
            self.assertEqual(load["ok"], load["scheduled"], name)
            self.assertGreater(load["ok"], 0, name)
            self.assertIn(name, done.stdout)
        self.assertEqual(loads["urgent"]["scheduled"], 50)
        self.assertEqual((loads["urgent"]["model"], loads["mlp"]["loop"]), ("bias", "closed"))
        # What was sent is what the server computed, row by row.
        self.assertEqual(self.rows("bias"), 8 * loads["bias"]["ok"] + 50)
        with open(requests, newline="") as file:
            sent = list(csv.DictReader(file))
        self.assertEqual({row["batch"] for row in sent if row["model"] == "bias"}, {"8"})
        self.assertEqual(len(sent), sum(load["scheduled"] for load in loads.values()))
        # Both views of a model are those of all loads on it.
        view = next(view for view in report["server_view"] if view["model"] == "bias")
        self.assertEqual(view["requests"], loads["bias"]["ok"] + loads["urgent"]["ok"])

    def test_the_worst_load_decides(self):
        spec = self.spec([{"model": "bias", "rate": 600, "slo_ms": GENEROUS},
                          {"model": "mlp", "rate": 100, "slo_ms": 0.001, "send_slo": False}])
        report, done = self.run_load("--spec", spec, *self.serve(), codes=(1, 3))
        self.assertEqual(report["models"][0]["verdict"]["result"], "pass")
        self.assertEqual(report["models"][1]["verdict"]["result"], "fail")
        self.assertIn(report["result"], ("fail", "invalid"))
        self.assertIn("all loads together", done.stdout)

    def test_flags_win_over_the_specification(self):
        url = self.serve()
        spec = self.spec([{"model": "bias", "arrivals": "constant", "rate": 20}], duration=600, seed=3,
                         url="http://127.0.0.1:1")
        report, _ = self.run_load("--spec", spec, "--duration", "0.5", *url)
        self.assertEqual(report["models"][0]["scheduled"], 10)
        done = tandem("loadgen", "--spec", spec, "--rate", "5", *url)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--rate", done.stderr + done.stdout)

    def test_a_batch_is_sent_where_there_is_a_batch_dimension(self):
        url = self.serve()
        x = self.folder / "x.npy"
        np.save(x, np.float32([[1, 2, 3, 4]]))
        common = ("--arrivals", "constant", "--rate", "20", "--duration", "0.5", "--warmup", "0", *url)
        for flags, rows in (((), 16), (("--input", f"x=@{x}"), 16), (("--input", "x=[1,2,3,4]"), 16),
                            (("--shape", "x:16,4"), 16)):
            before = self.rows("bias")
            self.run_load("--model", "bias", "--batch", "16", "--priority", "2", *flags, *common)
            self.assertEqual(self.rows("bias") - before, 10 * rows, flags)
        np.save(x, np.zeros((3, 4), np.float32))
        for flags, word in ((("--model", "bias", "--input", f"x=@{x}"), "[3,4]"), (("--model", "reciprocal"), "batch"),
                            (("--model", "bias", "--shape", "x:2,4"), "[2,4]")):
            done = tandem("loadgen", *flags, "--batch", "16", *common)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)
            self.assertIn("--batch is 16", done.stderr)

    def test_every_mistake_in_a_specification_is_told_with_its_place_and_value(self):
        file = self.folder / "mix.json"
        good = {"model": "bias", "rate": 5}
        for spec, words in (("[]", ["JSON"]), ("{}", ["/models is missing"]), ({"models": []}, ["/models is []"]),
                            ({"models": [5]}, ["/models/0 is 5"]), ({"models": [{}]}, ["/models/0/model is missing"]),
                            ({"models": [good], "duration": "long", "odd": 1, "warmup": -1},
                             ['/duration is "long"', "/odd is not known", "/warmup is -1"]),
                            ({"models": [dict(good, rate="x", batch=0, priority=-1)]},
                             ['/models/0/rate is "x"', "/models/0/batch is 0", "/models/0/priority is -1"]),
                            ({"models": [good, dict(good, name="b", slo_ms=-3, speed=9)]},
                             ["/models/1/slo_ms is -3", "/models/1/speed is not known: its value is 9"]),
                            ({"models": [good, good]}, ["/models/1", "name"]),
                            ({"models": [dict(good, rate=0)]}, ["/models/0/arrivals", "rate"]),
                            ({"models": [dict(good, users=3)]}, ["/models/0/users is 3"]),
                            ({"models": [{"model": "bias"}]}, ["/models/0/arrivals", "rate"]),
                            ({"models": [dict(good, arrivals="bursty:on=1")]}, ["/models/0/arrivals", "off"]),
                            ({"models": [dict(good, format="text")]}, ['/models/0/format is "text"']),
                            ({"models": [dict(good, inputs=5)]}, ["/models/0/inputs is 5"]),
                            ({"models": [dict(good, inputs={"a/b": None})]}, ["/models/0/inputs/a~1b is null"]),
                            ({"models": [dict(good, inputs={"x": {"random": -1}})]}, ["/models/0/inputs/x/random is -1"]),
                            ({"models": [dict(good, shapes={"x": [1, -4]})]}, ["/models/0/shapes/x is [1,-4]"]),
                            ({"models": [dict(good, expect=[])]}, ["/models/0/expect is []"]),
                            ({"models": [dict(good, expect="first.txt")]}, ["/models/0/expect", "first.txt"]),
                            ({"models": [dict(good, tolerance=-1, check_every=0)]}, ["/models/0/tolerance", "/models/0/check_every is 0"])):
            file.write_text(spec if isinstance(spec, str) else json.dumps(spec))
            done = tandem("loadgen", "--spec", file, "--url", "http://127.0.0.1:1")
            self.assertEqual(done.returncode, 2, f"{spec}: {done.stderr}")
            for word in words:
                self.assertIn(word, done.stderr, spec)
        # What only the server can tell names its place, too.
        url = self.serve()
        for load, code, words in ((dict(good, inputs={"q": 5}), 2, ["/models/0/inputs", "'q'", "x"]),
                                  (dict(good, inputs={"x": "text"}), 2, ["/models/0/inputs/x", "text"]),
                                  (dict(good, inputs={"x": "@/no/such.npy"}), 1, ["/models/0/inputs/x", "/no/such.npy"]),
                                  (dict(good, model="reciprocal", batch=2), 2, ["/models/0/batch is 2"]),
                                  (dict(good, model="nobody"), 1, ["/models/0", "nobody"])):
            done = tandem("loadgen", "--spec", self.spec([load]), *url)
            self.assertEqual(done.returncode, code, f"{load}: {done.stderr}")
            for word in words:
                self.assertIn(word, done.stderr, load)
        self.assertEqual(tandem("loadgen", "--spec", self.folder / "none.json").returncode, 2)

    # ------------------------------------------------------------------ traces

    def test_a_trace_sends_the_sizes_that_it_names_to_the_models_that_it_names(self):
        url = self.serve()
        trace = self.folder / "trace.csv"
        sizes = [1 + i % 5 for i in range(40)]
        trace.write_text("time_s,model,size\n" +
                         "".join(f"{i / 50},{'mlp' if i % 4 == 0 else 'bias'},{size}\n" for i, size in enumerate(sizes)))
        requests = self.folder / "requests.csv"
        report, _ = self.run_load("--arrivals", f"trace:{trace}", "--duration", "1", "--warmup", "0", "--csv", requests, *url)
        expected = {"mlp": sum(sizes[::4]), "bias": sum(sizes) - sum(sizes[::4])}
        self.assertEqual([model["name"] for model in report["models"]], ["mlp", "bias"])
        self.assertEqual([model["ok"] for model in report["models"]], [10, 30])
        for model, rows in expected.items():
            self.assertEqual(self.rows(model), rows)
        with open(requests, newline="") as file:
            sent = sorted(csv.DictReader(file), key=lambda row: float(row["scheduled_s"]))
        self.assertEqual([int(row["batch"]) for row in sent], sizes)
        # One model of it.
        report, _ = self.run_load("--model", "mlp", "--arrivals", f"trace:{trace}", "--duration", "1", "--warmup", "0", *url)
        self.assertEqual((len(report["models"]), report["models"][0]["ok"]), (1, 10))

    def test_a_trace_that_cannot_be_is_told(self):
        url = self.serve()
        trace = self.folder / "trace.csv"
        head = "time_s,model,size\n"
        for text, flags, word in ((head + "0,reciprocal,2\n", (), "batch dimension"), (head + "0,,2\n", (), "--model"),
                                  (head + "0,bias,2\n", ("--batch", "3", "--model", "bias"), "--batch is 3"),
                                  (head + "0,bias,0\n", (), "line 2"), (head + "0,other,1\n", ("--model", "bias"), "bias"),
                                  (head + "".join(f"{i},bias,{i + 1}\n" for i in range(100)), (), "different sizes"),
                                  (head + "".join(f"{i},m{i},1\n" for i in range(101)), (), "101 models")):
            trace.write_text(text)
            done = tandem("loadgen", "--arrivals", f"trace:{trace}", *flags, *url)
            self.assertIn(done.returncode, (1, 2), f"{text[:50]}: {done.stderr}")
            self.assertIn(word, done.stderr, text[:50])
        for file in ("/no/such/trace.csv", self.folder):
            done = tandem("loadgen", "--model", "bias", "--arrivals", f"trace:{file}", *url)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn(str(file), done.stderr)

    # ------------------------------------------------------------------ answers

    def test_right_answers_pass_and_wrong_ones_fail_the_run(self):
        url = self.serve()
        x = np.float32([[1, 2, 3, 4]])
        np.save(self.folder / "x.npy", x)
        right, wrong, near, y = (self.folder / name for name in ("right.npz", "wrong.npz", "near.npz", "y.npy"))
        np.savez_compressed(right, y=x + 1)
        np.savez(wrong, y=np.float32([[2, 3, 4, 6]]))
        np.savez(near, y=x + np.float32(1.01))
        np.save(y, x + 1)
        common = ("--model", "bias", "--input", f"x=@{self.folder / 'x.npy'}", "--arrivals", "constant", "--rate", "100",
                  "--duration", "0.5", "--warmup", "0", *url)
        for form in ("binary", "json"):
            for flags in (("--expect", right), ("--expect", f"y={y}"), ("--expect", "first"),
                          ("--expect", near, "--tolerance", "0.02")):
                report, _ = self.run_load(*common, *flags, "--format", form)
                model = report["models"][0]
                self.assertEqual((model["ok"], model["checked"], model["wrong_answers"]), (50, 50, 0), flags)
            report, done = self.run_load(*common, "--expect", wrong, "--format", form, "--slo-ms", GENEROUS, codes=(1, ))
            model = report["models"][0]
            self.assertEqual((report["result"], model["ok"], model["failed"], model["wrong_answers"]), ("fail", 0, 50, 50))
            self.assertEqual(model["failures"], {"wrong answer": 50})
            self.assertIn("element 3 is 5, expected 6", done.stdout)
            self.assertIn("50 failed: wrong answer", done.stdout)
        report, _ = self.run_load(*common, "--expect", near, "--check-every", "10", codes=(1, ))
        self.assertEqual((report["models"][0]["checked"], report["models"][0]["failed"]), (5, 5))
        self.assertEqual(report["generator"]["check"]["count"], 5)
        # In a batch the answer is as large.
        np.savez(right, y=np.repeat(x + 1, 3, axis=0))
        report, _ = self.run_load(*common, "--expect", right, "--batch", "3")
        self.assertEqual(report["models"][0]["wrong_answers"], 0)

    def test_an_expectation_that_cannot_be_is_told(self):
        url = self.serve()
        odd, ints, text = (self.folder / name for name in ("odd.npz", "ints.npz", "text.npz"))
        np.savez(odd, z=np.float32([1]))
        np.savez(ints, y=np.int32([[1, 2, 3, 4]]))
        text.write_text("no archive")
        base = ("--model", "bias", "--rate", "5", *url)
        for flags, code, word in ((("--expect", odd), 2, "'z'"), (("--expect", ints), 2, "INT32"), (("--expect", text), 1, "text.npz"),
                                  (("--expect", "/no/such.npz"), 1, "/no/such.npz"), (("--expect", "what"), 2, "what"),
                                  (("--expect", "first", "--expect", odd), 2, "exclude"),
                                  (("--expect", "y=a.npy", "--expect", "y=b.npy"), 2, "twice"),
                                  (("--expect", "first", "--tolerance", "-1"), 2, "--tolerance"),
                                  (("--expect", "first", "--check-every", "0"), 2, "--check-every")):
            done = tandem("loadgen", *base, *flags)
            self.assertEqual(done.returncode, code, f"{flags}: {done.stderr}")
            self.assertIn(word, done.stderr + done.stdout, flags)

    def test_a_full_disk_is_told_for_every_report(self):
        url = self.serve()
        for flag in ("--json", "--html", "--csv"):
            done = tandem("loadgen", "--model", "bias", "--rate", "50", "--duration", "0.3", "--warmup", "0", flag, "/dev/full", *url)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("offered/s", done.stdout)  # What was found is told all the same.
            self.assertIn(flag, done.stderr)
            self.assertIn("No space", done.stderr)
