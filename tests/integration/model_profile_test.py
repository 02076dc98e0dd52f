"""What the operators of a served model take: over REST and on the command line, beside requests, and for whom not."""
import json
import threading
import xml.dom.minidom

import numpy as np
import onnxruntime

import models
from onnx_file import Graph, message
from tandem_server import SharedServerTest, TandemTest, tandem, until

RUNS = 3


def sequence():
    """y = x + x, FP32 [batch,length]: its second dimension is as variable as the first."""
    return Graph().input("x", "FP32", ["batch", "length"]).output("y", "FP32",
                                                                  ["batch", "length"]).node("Add", ["x", "x"], ["y"])


def quoted():
    """Two nodes, the first of which has quotes in its name, which ONNX Runtime writes as they are."""
    graph = Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4])
    graph.nodes += message(1, message(1, "x") + message(2, "h") + message(3, 'say "x"') + message(4, "Sin"))
    return graph.node("Cos", ["h"], ["y"])


class ModelProfile(SharedServerTest):
    @classmethod
    def fill(cls, repository):
        models.place(repository, "mlp", models.mlp())
        models.place(repository, "convolution", models.convolution())
        models.place(repository, "large", models.mlp(hidden=4096))
        models.place(repository, "sequence", sequence())
        models.place(repository, "quoted", quoted())
        models.place(repository, "7", models.mlp())
        warm = 'inputs { key: "x" value { dims: [9] zero_data: true } }'
        models.place(repository, "warm", sequence(), config=f'model_warmup {{ name: "w" batch_size: 2 {warm} }}')
        cls.temporary = cls._folder(cls.addClassCleanup)
        cls.server_options = {"environment": {"TMPDIR": str(cls.temporary)}}

    def profile(self, model, body=None, **options):
        return self.server.call("POST", f"/v2/models/{model}/profile", body, **options)

    def cli(self, *arguments):
        return tandem("profile", *arguments, "--url", f"http://{self.server.http}")

    def left_behind(self):
        return [path for path in self.temporary.rglob("*") if path.name.endswith(".json")]

    def test_the_nodes_are_those_that_onnx_runtime_itself_tells(self):
        options = onnxruntime.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(self.folder / "own")
        session = onnxruntime.InferenceSession(str(self.repository / "mlp" / "1" / "model.onnx"), options)
        session.run(None, {"x": np.zeros((1, 64), np.float32)})
        with open(session.end_profiling(), encoding="utf8") as file:
            own = sorted(event["args"]["op_name"] for event in json.load(file) if event["cat"] == "Node")
        answer = self.profile("mlp", {"runs": RUNS})
        self.assertEqual(answer.status, 200, answer)
        profile = answer.json()
        self.assertEqual(sorted(op["kind"] for op in profile["ops"]), own)
        self.assertEqual((profile["model"], profile["version"], profile["runs"]), ("mlp", "1", RUNS))
        self.assertEqual(profile["inputs"], [{"name": "x", "datatype": "FP32", "shape": [1, 64]}])
        self.assertEqual(profile["training"], [])
        for op in profile["ops"]:
            self.assertEqual((op["count"], op["provider"]), (RUNS, "CPUExecutionProvider"))
        times = [op["total_ms"] for op in profile["ops"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertAlmostEqual(sum(times), profile["total_ms"], places=6)
        self.assertAlmostEqual(sum(op["share"] for op in profile["ops"]), 1, places=6)
        self.assertLessEqual(max(op["typical_ms"] for op in profile["ops"]), profile["run_ms"])
        self.assertEqual(self.left_behind(), [])

    def test_a_version_can_be_named(self):
        answer = self.server.call("POST", "/v2/models/mlp/versions/1/profile", {"runs": 1})
        self.assertEqual((answer.status, answer.json()["version"]), (200, "1"))
        self.assertEqual(self.server.call("POST", "/v2/models/mlp/versions/2/profile").status, 404)
        self.assertEqual(self.profile("nobody").status, 404)

    def test_shapes_are_asked_for_where_they_vary(self):
        refused = self.profile("sequence")
        self.assertEqual(refused.status, 400, refused)
        self.assertIn("'x'", refused.error)
        given = self.profile("sequence", {"runs": RUNS, "shapes": {"x": [2, 5]}})
        self.assertEqual((given.status, given.json()["inputs"][0]["shape"]), (200, [2, 5]))
        self.assertEqual(self.profile("warm").json()["inputs"][0]["shape"], [2, 9])

    def test_bodies_that_do_not_fit_are_refused(self):
        for body in ([], {"run": 3}, {"runs": 0}, {"runs": 1_000_000}, {"runs": "3"}, {"shapes": [1]},
                     {"shapes": {"x": 7}}, {"shapes": {"x": [1, -1]}}, {"shapes": {"y": [1, 64]}},
                     {"shapes": {"x": [1, 65]}}, {"shapes": {"x": [1 << 40, 64]}}):
            answer = self.profile("mlp", body)
            self.assertIn(answer.status, (400, 413), f"{body}: {answer}")
        self.assertEqual(self.server.call("GET", "/v2/models/mlp/profile").status, 405)

    def test_a_name_that_spoils_its_record_spoils_no_other(self):
        profile = self.profile("quoted", {"runs": RUNS}).json()
        self.assertEqual([op["kind"] for op in profile["ops"]], ["Cos"])
        self.assertGreaterEqual(profile["unread"], RUNS)

    def test_as_a_table_as_json_and_as_a_flame_graph(self):
        picture = self.folder / "flame.svg"
        table = self.cli("mlp", "--runs", RUNS, "--top", "1", "--flame", picture)
        self.assertEqual(table.returncode, 0, table.stderr)
        lines = table.stdout.splitlines()
        self.assertEqual(lines[0].split()[:4], ["operator", "node", "provider", "count"])
        self.assertIn("more", lines[2])
        self.assertIn(f"{RUNS} runs on x [1,64]", lines[3])
        drawn = xml.dom.minidom.parse(str(picture))
        titles = [title.firstChild.data for title in drawn.getElementsByTagName("title")]
        self.assertTrue(any(title.startswith("Softmax: ") for title in titles), titles)
        as_json = self.cli("sequence", "--shape", "x:1,3", "--json")
        self.assertEqual(json.loads(as_json.stdout)["inputs"][0]["shape"], [1, 3], as_json.stderr)

    def test_what_is_all_digits_is_a_job_unless_somebody_says_otherwise(self):
        self.assertNotEqual(self.cli("7").returncode, 0)
        as_model = self.cli("7", "--model", "--runs", RUNS)
        self.assertEqual(as_model.returncode, 0, as_model.stderr)
        self.assertIn("7 version 1", as_model.stdout)
        self.assertEqual(self.cli("mlp", "--job").returncode, 2)
        self.assertNotEqual(self.cli("mlp", "--job", "--model").returncode, 0)
        self.assertEqual(self.cli("nobody").returncode, 1)

    def test_there_is_one_at_a_time(self):
        refusals = []
        done = threading.Event()

        def ask():
            for _ in range(50):
                answer = self.profile("large", {"runs": 500})
                if answer.status == 503:
                    refusals.append(answer)
                    done.set()
                if done.is_set():
                    return

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(refusals)
        self.assertIn("another model is being profiled", refusals[0].error)
        self.assertIn("Retry-After", refusals[0].headers)
        until(lambda: self.profile("mlp", {"runs": 1}).status == 200, "the next one is made")

    def test_requests_are_answered_beside_it_and_are_all_that_is_counted(self):
        request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3, 32, 32], "data": [0.5] * 3072}]}
        alone = self.server.call("POST", "/v2/models/convolution/infer", request).json()["outputs"]
        before = self.server.statistics("convolution")["execution_count"]
        asked = 0
        profiler = threading.Thread(target=lambda: self.profile("convolution", {"runs": 900}))
        profiler.start()
        while profiler.is_alive():
            answer = self.server.call("POST", "/v2/models/convolution/infer", request)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.json()["outputs"], alone)
            asked += 1
        self.assertEqual(self.server.statistics("convolution")["execution_count"], before + asked)

    def test_whoever_hangs_up_ends_it(self):
        for _ in range(3):
            try:
                self.profile("large", {"runs": 1000}, timeout=0.05)
            except TimeoutError:
                pass
            until(lambda: self.profile("mlp", {"runs": 1}).status == 200, "it has ended")
        until(lambda: not self.left_behind(), "nothing is left behind")


class Strangers(TandemTest):
    def test_a_token_is_needed(self):
        repository = self.folder / "models"
        models.place(repository, "mlp", models.mlp())
        tokens = self.folder / "tokens"
        tokens.write_text("secret\n")
        server = self.start(repository, "--token-file", tokens, wait=False)
        server.wait_ports()
        until(lambda: server.call("GET", "/v2/health/ready").status == 200, "it is ready")
        self.assertEqual(server.call("POST", "/v2/models/mlp/profile").status, 401)
        known = server.call("POST", "/v2/models/mlp/profile", headers={"Authorization": "Bearer secret"})
        self.assertEqual(known.status, 200, known)

    def test_a_file_that_has_changed_is_not_the_one_that_is_served(self):
        repository = self.folder / "models"
        models.place(repository, "mlp", models.mlp())
        server = self.start(repository)
        models.place(repository, "mlp", models.mlp(seed=2, hidden=50))
        self.assertEqual(server.call("POST", "/v2/models/mlp/profile").status, 409)
