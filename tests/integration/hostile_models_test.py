"""Models and load calls that mean harm: cases 14, 15, 16 and 21 of the list in the protocol notes."""
import base64
import json
import os
import pathlib
import resource
import shutil
import unittest

import numpy as np

import models
from onnx_file import Graph, external_tensor, function, message, model_bytes, number, sparse_tensor, tensor, write
from raw_http import HostileTest, request
from tandem_server import PATIENCE, SANITIZED

GOOD = model_bytes(models.bias())
CALLERS_MISTAKES = {400, 404, 413, 501}


def with_weights(proto):
    """y = x + w, where w is this initializer."""
    return (Graph().input("x", "FP32",
                          ["batch", 4]).output("y", "FP32",
                                               ["batch", 4]).raw_initializer(proto).node("Add", ["x", "w"], ["y"]))


def warm_up(name, data, count=1):
    """A configuration with a warm-up sample."""
    return (f'{{"model_warmup": [{{"name": "w", "count": {count}, '
            f'"inputs": {{"{name}": {{"data_type": "TYPE_FP32", {data}}}}}}}]}}')


class ModelTest(HostileTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "bias", "--max-request-bytes", "16777216")

    @classmethod
    def setUpClass(cls):
        cls.temporary = cls._folder(cls.addClassCleanup)
        cls.server_options = {"environment": {"TMPDIR": str(cls.temporary)}}
        super().setUpClass()

    def load(self, name, parameters=None):
        body = json.dumps({"parameters": parameters}).encode() if parameters is not None else b""
        return self.send(request(body, f"/v2/repository/models/{name}/load"))

    def assertNotLoaded(self, name, *words, label=""):
        self.assertRefused(self.load(name), *words, status=CALLERS_MISTAKES, label=label or name)
        self.assertNotEqual(self.server.call("GET", f"/v2/models/{name}/ready").status, 200, label)

    def tearDown(self):
        self.assertEqual(os.listdir(self.temporary), [], "files of load calls that failed are left behind")
        super().tearDown()


class ShapesThatKernelsDoNotBear(ModelTest):
    """ONNX Runtime trusts shapes and indices further than a server can."""
    def infer(self, model, **inputs):
        tensors = [{
            "name": name, "datatype": "INT64" if np.asarray(value).dtype == np.int64 else "FP32",
            "shape": list(np.shape(value)), "data": np.asarray(value).ravel().tolist()
        } for name, value in inputs.items()]
        return self.send(request(json.dumps({"inputs": tensors}).encode(), f"/v2/models/{model}/infer"))

    def test_dimensions_of_zero_are_refused(self):
        concat = (Graph().input("x", "FP32", ["a", "b", "c"]).input("z", "FP32", ["d", "e", "f"]).output(
            "y", "FP32", ["g", "h", "i"]).node("Concat", ["x", "z"], ["y"], axis=1))
        einsum = (Graph().input("x", "FP32", ["b", "i", 3]).output("y", "FP32", ["b", "i", 3]).initializer(
            "w", np.ones((3, 3), np.float32)).node("Einsum", ["x", "w"], ["y"], equation="bid,de->bie"))
        convolution = (Graph().input("x", "FP32", [1, 1, 4, 4]).input("w", "FP32", [1, 1, "k", "l"]).output(
            "y", "FP32", ["a", "b", "c", "d"]).node("Conv", ["x", "w"], ["y"]))
        for name, graph in (("concat", concat), ("einsum", einsum), ("convolution", convolution)):
            models.place(self.repository, name, graph)
            self.assertEqual(self.load(name).status, 200, name)
        image = np.zeros((1, 1, 4, 4))
        for answer in (self.infer("concat", x=np.zeros((0, 3, 5)), z=np.zeros((2, 2, 5))),
                       self.infer("einsum", x=np.zeros((0, 1, 3))), self.infer("einsum", x=np.zeros((1, 0, 3))),
                       self.infer("convolution", x=image, w=np.zeros((1, 1, 0, 0)))):
            self.assertRefused(answer, "is 0|batch size 0", status=400)
        self.assertEqual(self.infer("convolution", x=image, w=np.zeros((1, 1, 2, 2))).status, 200)

    def test_an_input_without_a_shape_needs_one_from_the_configuration(self):
        graph = (Graph().input("x", "FP32", ["i", 3]).input("w", "FP32", None).output("y", "FP32", None).node(
            "Einsum", ["x", "w"], ["y"], equation="ij,jk->ik"))
        models.place(self.repository, "unranked", graph)
        self.assertNotLoaded("unranked", "'w'", "dims")
        models.place(self.repository, "unranked", graph, config='input { name: "x" dims: [-1, 3] }\n'
                     'input { name: "w" dims: [3, -1] }\noutput { name: "y" dims: [-1, -1] }')
        self.assertEqual(self.load("unranked").status, 200)
        answer = self.infer("unranked", x=np.ones((2, 3)), w=np.ones((3, 1)))
        self.assertEqual(answer.json()["outputs"][0]["data"], [3, 3], answer)
        self.assertRefused(self.infer("unranked", x=np.ones((2, 3)), w=np.ones(())), "'w'", status=400)

    def test_indices_that_nobody_checks_do_not_come_from_requests(self):
        graph = (Graph().input("x", "FP32", [2, 2]).input("k", "INT64", []).output("y", "FP32", [2, 2]).node(
            "Trilu", ["x", "k"], ["y"]))
        models.place(self.repository, "trilu", graph)
        self.assertNotLoaded("trilu", "Trilu", "'k'")

    def test_an_output_that_does_not_fit_its_reshape_is_refused(self):
        graph = (Graph().input("x", "FP32", ["n"]).input("s", "INT64", [2]).output("y", "FP32", ["a", "b"]).node(
            "Reshape", ["x", "s"], ["y"]))
        models.place(self.repository, "reshaped", graph, config='output { name: "y" dims: [4] reshape { shape: [2, 2] } }')
        self.assertEqual(self.load("reshaped").status, 200)
        answer = self.infer("reshaped", x=np.arange(4.0), s=np.array([2, 2]))
        self.assertEqual(answer.json()["outputs"][0]["shape"], [4], answer)
        self.assertRefused(self.infer("reshaped", x=np.arange(2.0), s=np.array([1, 2])), "'y'", "[1,2]", status=400)

    def test_an_output_that_is_listed_twice_is_refused(self):
        graph = (Graph().input("x", "FP32", [4]).output("y", "FP32", [4]).output("y", "FP32", [4]).node("Relu", ["x"], ["y"]))
        models.place(self.repository, "twice", graph)
        self.assertNotLoaded("twice", "'y'|twice|Duplicate")


class FilesInLoadCalls(ModelTest):
    def test_paths_out_of_the_model_are_refused(self):
        content = base64.b64encode(GOOD).decode()
        before = sorted(self.repository.rglob("*"))
        for path in ("../bias/1/model.onnx", "/etc/passwd", "1/../../model.onnx", "1/a/b", "1//model.onnx",
                     "0/model.onnx", "01/model.onnx", "-1/model.onnx", "+1/model.onnx", "1/", "/model.onnx",
                     "/1/model.onnx", "1", "1/..", "1/.", "1/\0", "1/model.onnx\0x", "1\\model.onnx", "1/..\\x", "",
                     "/", "..", "../", "1/" + "n" * 5000, "n" * 100_000, "1/" * 3000 + "x", "9" * 40 + "/model.onnx",
                     f"{2**63}/model.onnx", " 1/model.onnx", "1 /model.onnx", "1/model\n.onnx", "x/model.onnx",
                     "1.0/model.onnx", "./1/model.onnx", "1/./model.onnx", "~/model.onnx", "config.pbtxt"):
            answer = self.load("sent", {"config": "{}", f"file:{path}": content})
            self.assertRefused(answer, status=400, label=path[:60])
        self.assertEqual(sorted(self.repository.rglob("*")), before)

    def test_content_that_is_not_base64_is_refused(self):
        for content in ("!", "abc", "a===", "=abc", "ab=c", "YW Jj", "YWJj\nYWJj", "YWJj=", "YW\0j", "äöüß", "YWJ-",
                        "YWJ_"):
            self.assertRefused(self.load("sent", {"config": "{}", "file:1/model.onnx": content}),
                               "file:1/model.onnx",
                               status=400,
                               label=content)
        for content in (1, None, True, [], {}, ["YWJj"]):
            answer = self.load("sent", {"config": "{}", "file:1/model.onnx": content})
            self.assertRefused(answer, status={400, 404}, label=str(content))

    def test_oversized_content_is_refused(self):
        self.assertRefused(self.load("sent", {"config": "{}", "file:1/model.onnx": "A" * (17 << 20)}), status=413)
        self.assertRefused(self.load("sent", {"config": "{}", "file:1/model.onnx": "A" * (8 << 20)}),
                           "ONNX",
                           status=400)
        self.assertRefused(self.load("sent",
                                     {"config": "{}", **{f"file:{i}/model.onnx": "YWJj" for i in range(1, 2000)}}),
                           status=400)

    def test_content_without_a_configuration_or_a_model_is_refused(self):
        content = base64.b64encode(GOOD).decode()
        self.assertRefused(self.load("sent", {"file:1/model.onnx": content}), "config", status=400)
        self.assertRefused(self.load("sent", {"config": "{}", "file:1/other.onnx": content}), status=400)
        self.assertRefused(self.load("sent", {"config": "{}", "file:1/model.onnx": ""}), status=400)
        self.assertRefused(self.load("sent", {"config": 3, "file:1/model.onnx": content}), "config", status=400)
        self.assertRefused(self.load("sent", {"unknown": "x"}), "unknown", status=400)

    def test_configurations_that_make_no_sense_are_refused(self):
        for config in (
                "", "x", "[]", "null", "{", '{"max_batch_size": -1}', '{"max_batch_size": 1e30}',
                '{"max_batch_size": "many"}', '{"input": 3}',
                '{"input": [{"name": "zzz", "data_type": "TYPE_FP32", "dims": [4]}]}',
                '{"input": [{"name": "x", "data_type": "TYPE_INT8", "dims": [-1, 4]}]}',
                '{"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 5]}]}', '{"name": "other"}',
                '{"platform": "tensorflow_savedmodel"}', '{"backend": "python"}',
                '{"version_policy": {"specific": {"versions": [99]}}}',
                '{"default_model_filename": "../bias/1/model.onnx"}', '{"default_model_filename": "/etc/passwd"}',
                '{"sequence_batching": {}}', '{"ensemble_scheduling": {}}',
                '{"instance_group": [{"kind": "KIND_GPU"}]}', '{"parameters": {"slo_ms": {"string_value": "-1"}}}',
                '{"parameters": {"slo_ms": {"string_value": "soon"}}}',
                '{"output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1, 4], "label_filename": "../x"}]}',
                '{"optimization": {"execution_accelerators": {"cpu_execution_accelerator": [{"name": "zzz"}]}}}',
                warm_up("x", '"dims": [4000000000, 4000000000], "zero_data": true'),
                warm_up("x", '"dims": [4], "input_data_file": "../../../../etc/passwd"'),
                warm_up("nope", '"dims": [4], "zero_data": true', count=4000000000),
                '{"dynamic_batching": {"priority_levels": -1}}', '{"name": "' + "n" * 1_200_000 + '"}'):
            answer = self.load("spare", {"config": config})
            self.assertRefused(answer, status={400, 413, 501}, label=config[:80])
        self.assertEqual(self.load("spare").status, 200)


class Divisions(ModelTest):
    """What x86-64 answers with a signal that ends the process."""
    def infer(self, name, datatype, x, z):
        return self.server.call(
            "POST", f"/v2/models/{name}/infer", {
                "inputs": [{"name": key, "shape": [len(data)], "datatype": datatype, "data": data}
                           for key, data in (("x", x), ("z", z))]
            })

    def test_integers_divided_by_zero_are_refused(self):
        for op in ("Div", "Mod"):
            for datatype, smallest in (("INT32", -2**31), ("INT64", -2**63)):
                name = f"divide_{op}_{datatype}".lower()
                models.place(self.repository, name, models.divide(op, datatype))
                self.addCleanup(shutil.rmtree, self.repository / name)
                self.assertEqual(self.load(name).status, 200)
                for x, z in (([6, 6], [2, 0]), ([smallest, 6], [-1, 3])):
                    self.assertRefused(self.infer(name, datatype, x, z), "divided by zero", status=400, label=name)
                    answer = self.infer(name, datatype, [6, 7], [2, 3])
                    self.assertEqual(answer.json()["outputs"][0]["data"], [3, 2] if op == "Div" else [0, 1])
                self.server.call("POST", f"/v2/repository/models/{name}/unload")

    def test_models_that_divide_by_zero_while_they_load_are_refused(self):
        folded = (Graph().input("x", "INT64", [1]).output("y", "INT64", [1]).initializer(
            "a", np.array([1])).initializer("b", np.array([0])).node("Div", ["a", "b"],
                                                                     ["c"]).node("Add", ["x", "c"], ["y"]))
        strides = (Graph().input("x", "FP32", [1, 1, 4, 4]).output("y", "FP32", [1, 1, "h", "w"]).initializer(
            "w", np.ones((1, 1, 1, 1), np.float32)).node("Conv", ["x", "w"], ["y"], strides=[0, 0]))
        self.addCleanup(shutil.rmtree, self.repository / "divides")
        for label, graph in (("a constant", folded), ("strides", strides)):
            write(self.repository / "divides/1/model.onnx", graph)
            self.assertNotLoaded("divides", label=label)


class ExternalData(ModelTest):
    def setUp(self):
        super().setUp()
        self.server.call("POST", "/v2/repository/models/outside/unload")
        self.secret = self.folder / "secret.bin"
        self.secret.write_bytes(np.arange(4, dtype="<f4").tobytes())
        self.name = "outside"
        self.model = self.repository / self.name
        self.addCleanup(shutil.rmtree, self.model, ignore_errors=True)

    def place(self, location, **range_):
        shutil.rmtree(self.model, ignore_errors=True)
        write(self.model / "1/model.onnx", with_weights(external_tensor("w", [4], location, **range_)))
        (self.model / "1/weights.bin").write_bytes(np.arange(4, dtype="<f4").tobytes())

    def test_data_beside_the_model_is_read(self):
        self.place("weights.bin", length=16, offset=0)
        self.assertEqual(self.load(self.name).status, 200)
        answer = self.server.call(
            "POST", f"/v2/models/{self.name}/infer",
            {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}]})
        self.assertEqual(answer.json()["outputs"][0]["data"], [0, 1, 2, 3])
        self.server.call("POST", f"/v2/repository/models/{self.name}/unload")

    def test_paths_out_of_the_folder_are_refused(self):
        for location in (str(self.secret), os.path.relpath(self.secret, self.model / "1"), "../../bias/1/model.onnx",
                         "../1/weights.bin", "./../1/weights.bin", "/dev/zero", "/proc/self/environ", "/etc/passwd",
                         "..", ".", "", "/", "weights.bin/..", "a/../../1/weights.bin", "weights.bin\0", "~/x",
                         "n" * 5000, "missing.bin", "a\\..\\b", "//etc/passwd", "file:///etc/passwd"):
            self.place(location)
            self.assertNotLoaded(self.name, label=location[:60])

    def test_links_out_of_the_folder_are_refused(self):
        self.place("weights.bin")
        weights = self.model / "1/weights.bin"
        for target in (self.secret, pathlib.Path("/dev/zero"), pathlib.Path("/etc/passwd"),
                       self.repository / "bias/1/model.onnx", self.folder / "missing", weights):
            weights.unlink(missing_ok=True)
            weights.symlink_to(target)
            self.assertNotLoaded(self.name, label=f"a link to {target}")
        self.place("inner/weights.bin")
        (self.model / "1/inner").symlink_to(self.folder)
        (self.folder / "weights.bin").write_bytes(self.secret.read_bytes())
        self.assertNotLoaded(self.name, label="a folder that is a link")

    def test_what_is_no_file_is_refused(self):
        self.place("weights.bin")
        weights = self.model / "1/weights.bin"
        weights.unlink()
        weights.mkdir()
        self.assertNotLoaded(self.name, label="a folder")
        weights.rmdir()
        os.mkfifo(weights)
        self.assertNotLoaded(self.name, label="a pipe")

    def test_ranges_beyond_the_file_are_refused(self):
        for offset, length in ((0, 17), (1, 16), (16, 16), (-1, 16), (0, -1), (2**63, 16), (2**64, 16), (0, 2**63),
                               (2**64 - 8, 16), (0, 8), (0, 32), ("x", 16), (0, "x"), ("0x0", 16), (1.5, 16)):
            self.place("weights.bin", offset=offset, length=length)
            self.assertNotLoaded(self.name, label=f"offset {offset}, length {length}")

    def test_files_in_load_calls_are_held_to_the_same(self):
        for location in (str(self.secret), "../../../etc/passwd", "/etc/passwd", "../config.pbtxt"):
            content = model_bytes(with_weights(external_tensor("w", [4], location)))
            answer = self.load("sent", {"config": "{}", "file:1/model.onnx": base64.b64encode(content).decode()})
            self.assertRefused(answer, status=400, label=location)

    def test_models_that_are_links_out_of_the_repository_are_refused(self):
        elsewhere = self.folder / "elsewhere"
        write(elsewhere / "1/model.onnx", models.bias())
        self.model.symlink_to(elsewhere)
        self.assertNotLoaded(self.name, label="the model's folder")
        self.model.unlink()
        self.model.mkdir()
        (self.model / "1").symlink_to(elsewhere / "1")
        self.assertNotLoaded(self.name, label="the version's folder")
        (self.model / "1").unlink()
        (self.model / "1").mkdir()
        (self.model / "1/model.onnx").symlink_to(elsewhere / "1/model.onnx")
        self.assertNotLoaded(self.name, label="the model's file")
        (self.model / "1/model.onnx").unlink()
        write(self.model / "1/model.onnx", models.bias())
        (self.folder / "config").write_text("max_batch_size: 4")
        (self.model / "config.pbtxt").symlink_to(self.folder / "config")
        self.assertNotLoaded(self.name, label="the configuration")


class BrokenModels(ModelTest):
    def setUp(self):
        super().setUp()
        self.path = self.repository / "broken/1/model.onnx"
        self.path.parent.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.repository / "broken", ignore_errors=True)

    def refuse(self, content, label):
        self.path.write_bytes(content)
        self.assertNotLoaded("broken", label=label)

    def test_truncated_models_are_refused(self):
        for size in range(0, len(GOOD), 3):
            self.path.write_bytes(GOOD[:size])
            answer = self.load("broken")
            if answer.status != 200:  # Cut behind a whole field it may still be a model.
                self.assertRefused(answer, status=CALLERS_MISTAKES, label=f"cut at {size}")

    def test_damaged_models_are_answered(self):
        random = np.random.default_rng(11)
        content = model_bytes(models.mlp())
        for round_ in range(150):
            damaged = bytearray(content if round_ % 2 else GOOD)
            for place in random.integers(0, min(len(damaged), 600), 1 + round_ % 5):
                damaged[place] = random.integers(0, 256)
            self.path.write_bytes(damaged)
            answer = self.load("broken")
            if answer.status != 200:
                self.assertRefused(answer, status=CALLERS_MISTAKES, label=f"round {round_}")
        self.server.call("POST", "/v2/repository/models/broken/unload")

    def test_files_that_are_no_models_are_refused(self):
        for label, content in {
                "nothing": b"", "text": b"hello", "noise": os.urandom(100_000), "zeros": bytes(100_000),
                "a zip": b"PK\3\4" + bytes(1000), "a program": pathlib.Path("/bin/true").read_bytes(), "JSON": b"{}",
                "no graph": number(1, 8) + message(8, number(2, 17)), "an empty graph": model_bytes(Graph()),
                "endless varint": b"\xff" * 1000, "a length beyond the end": b"\x3a\xff\xff\xff\xff\x0f"
        }.items():
            self.refuse(content, label)

    def test_wrong_versions_are_refused(self):
        for versions in ({"ir_version": 999}, {"ir_version": 0}, {"ir_version": -1}, {"ir_version": 2**62},
                         {"opset": 999}, {"opset": -1}, {"opset": 2**62}):
            self.refuse(model_bytes(models.bias(), **versions), str(versions))

    def test_graphs_that_cannot_run_are_refused(self):
        def graph():
            return Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4])

        deep = graph().node("Relu", ["x"], ["y"])
        for _ in range(2000):
            deep = (graph().initializer("c", np.array(True)).node("If", ["c"], ["y"],
                                                                  then_branch=deep,
                                                                  else_branch=Graph().output("y", "FP32", [4])))
        cases = {
            "unknown operator": graph().node("Nonsense", ["x"],
                                             ["y"]), "unknown domain": graph().node("Relu", ["x"], ["y"],
                                                                                    domain="evil.com"),
            "missing value": graph().node("Add", ["x", "none"], ["y"]),
            "a circle": graph().node("Add", ["x", "b"], ["a"]).node("Relu", ["a"], ["b"]).node("Relu", ["b"], ["y"]),
            "given twice": graph().node("Relu", ["x"], ["y"]).node("Relu", ["x"], ["y"]), "no node": graph(),
            "wrong types": graph().initializer("i", np.array([1])).node("Add", ["x", "i"], ["y"]),
            "operator of the training domain": graph().node("Gradient", ["x"], ["y"], domain="ai.onnx.training"),
            "wrong attribute": graph().node("Softmax", ["x"], ["y"], axis="one"), "2000 graphs in one another": deep,
            "too little data": with_weights(number(1, 4) + number(2, 1) + message(8, "w") + message(9, bytes(8))),
            "too much data": with_weights(number(1, 4) + number(2, 1) + message(8, "w") + message(9, bytes(64))),
            "more elements than there is memory": with_weights(
                number(1, 2**40) + number(1, 2**20) + number(2, 1) + message(8, "w") + message(9, bytes(8))),
            "a negative size": with_weights(number(1, -4) + number(2, 1) + message(8, "w") + message(9, bytes(8))),
            "an unknown element type": with_weights(
                number(1, 4) + number(2, 99) + message(8, "w") + message(9, bytes(16)))
        }
        for label, case in cases.items():
            self.refuse(model_bytes(case), label)

    def test_functions_that_never_end_are_refused(self):
        graph = Graph().input("x", "FP32", [4]).output("y", "FP32", [4]).node("f0", ["x"], ["y"], domain="local")
        cases = {
            "a function that calls itself": [function("f0", ["f0"])],
            "two that call each other": [function("f0", ["f1"]), function("f1", ["f0"])],
            "2^64 nodes": [function(f"f{i}", [f"f{i + 1}"] * 16) for i in range(16)],
            "100,000 functions deep": [function(f"f{i}", [f"f{i + 1}"]) for i in range(100_000)],
        }
        for label, functions in cases.items():
            self.refuse(model_bytes(graph, functions=functions), label)

    def test_sparse_tensors_are_refused(self):
        values = tensor("w", np.ones(1, np.float32))
        graph = Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4])
        for label, indices, shape in (("in order", [1], [4]), ("beyond the end", [1 << 40], [4]),
                                      ("below 0", [-1 << 40], [4]), ("huge", [1], [1 << 40])):
            sparse = sparse_tensor(shape, values, tensor("i", np.array(indices)))
            self.refuse(model_bytes(with_weights(sparse)), f"an initializer, {label}")
            constant = Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4]).node(
                "Constant", [], ["w"], sparse_value=sparse).node("Add", ["x", "w"], ["y"])
            self.refuse(model_bytes(constant), f"a constant, {label}")

    def test_models_that_need_far_more_memory_than_their_file_are_refused(self):
        dims = number(1, 2**36)

        def graph():
            return Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4])

        def shape(*sizes):
            return np.array(sizes, np.int64)

        string = {
            datatype: with_weights(dims + number(2, datatype) + message(8, "w"))
            for datatype in (1, 6, 7, 8, 10, 11, 12, 16)
        }
        cases = {
            **{f"no data of type {datatype}": case for datatype, case in string.items()},
            "ConstantOfShape": Graph().input("x", "FP32", [1]).output("y", "FP32", ["n"]).initializer(
                "s", shape(2**40)).node("ConstantOfShape", ["s"], ["c"]).node("Add", ["x", "c"], ["y"]),
        }
        for label, case in cases.items():
            self.refuse(model_bytes(case), label)
        empty = graph().node("Relu", ["x"], ["y"])
        for label, field in (("nodes", 1), ("initializers", 5), ("inputs", 11), ("outputs", 12)):
            content = empty.serialize() + message(field, b"") * 6_000_000
            self.refuse(number(1, 8) + message(7, content) + message(8, number(2, 17)), f"6,000,000 {label}")

    @unittest.skipIf(SANITIZED, "sanitizers reserve more memory than any limit allows")
    def test_constants_that_fill_the_memory_are_refused(self):
        before = resource.prlimit(self.server.pid, resource.RLIMIT_DATA)
        self.assertLess(before[0], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the server bounds itself")
        resource.prlimit(self.server.pid, resource.RLIMIT_DATA, (1 << 30, before[1]))
        self.addCleanup(resource.prlimit, self.server.pid, resource.RLIMIT_DATA, before)

        def graph():
            return Graph().input("x", "FP32", [1]).output("y", "FP32", ["n"]).initializer("one", np.ones(1, np.float32))

        def shape(*sizes):
            return np.array(sizes, np.int64)

        doubled = graph().node("Concat", ["one", "one"], ["d0"], axis=0)
        for i in range(40):
            doubled.node("Concat", [f"d{i}", f"d{i}"], [f"d{i + 1}"], axis=0)
        pieces = graph()
        for i in range(16):
            value = tensor("", np.array([i], np.float32))
            pieces.initializer(f"s{i}", shape(1 << 25)).node("ConstantOfShape", [f"s{i}"], [f"c{i}"], value=value)
        for size in (1 << 29, 1 << 40):
            cases = {
                "ConstantOfShape": graph().initializer("s", shape(size)).node("ConstantOfShape", ["s"], ["c"]),
                "Expand": graph().initializer("s", shape(size)).node("Expand", ["one", "s"], ["c"]),
                "Tile": graph().initializer("s", shape(size)).node("Tile", ["one", "s"], ["c"]),
                "Range": graph().initializer("a", np.float32(0)).initializer("b", np.float32(size)).initializer(
                    "d", np.float32(1)).node("Range", ["a", "b", "d"], ["c"]),
            }
            for label, case in cases.items():
                self.refuse_or_unload(case.node("Add", ["x", "c"], ["y"]), f"{label} of {size}")
        self.refuse_or_unload(doubled.node("Add", ["x", "d40"], ["y"]), "doubled 40 times")
        self.refuse_or_unload(pieces.node("Sum", [f"c{i}" for i in range(16)], ["y"]), "16 pieces")

    def refuse_or_unload(self, graph, label):
        """A constant that is not computed while the model is loaded may fail in its runs instead."""
        self.path.write_bytes(model_bytes(graph))
        if self.load("broken").status == 200:
            answer = self.server.call("POST", "/v2/models/broken/infer",
                                      {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]})
            self.assertRefused(answer, status=CALLERS_MISTAKES, label=label)
            self.server.call("POST", "/v2/repository/models/broken/unload")
        self.assertWell()

    def test_a_model_that_is_no_file_is_refused(self):
        self.path.mkdir()
        self.assertNotLoaded("broken", label="a folder")
        self.path.rmdir()
        os.mkfifo(self.path)
        self.assertNotLoaded("broken", label="a pipe")
        self.path.unlink()
        self.path.symlink_to("/dev/zero")
        self.assertNotLoaded("broken", label="an endless device")
        self.path.unlink()
        self.path.symlink_to(self.path)
        self.assertNotLoaded("broken", label="a link to itself")
        self.path.unlink()
        self.assertNotLoaded("broken", label="no file")

    def test_configuration_files_that_are_wrong_are_refused(self):
        self.path.write_bytes(GOOD)
        config = self.path.parents[1] / "config.pbtxt"
        for text in ("nonsense", "max_batch_size: many", "max_batch_size: -2", "input {", "}",
                     "input { name: \"zzz\" data_type: TYPE_FP32 dims: 4 }", "\0", "name: \"other\"",
                     "input {" * 10_000, "name: \"" + "x" * 2_000_000 + "\"", "platform: \"pytorch_libtorch\"",
                     "version_policy { specific { versions: 7 } }"):
            config.write_text(text)
            self.assertNotLoaded("broken", label=text[:60])
        config.write_bytes(b"name: \"\xff\"")
        self.assertNotLoaded("broken", label="bad UTF-8")
        config.unlink()
        os.mkfifo(config)
        self.assertNotLoaded("broken", label="a pipe")
        config.unlink()
        for text in ("{", "[]", '{"max_batch_size": "x"}', "[" * 100_000, '{"a":' * 100_000):
            config.with_suffix(".json").write_text(text)
            self.assertNotLoaded("broken", label=text[:60])

    def test_a_broken_reload_keeps_what_is_served(self):
        self.path.write_bytes(GOOD)
        self.assertEqual(self.load("broken").status, 200)
        self.path.write_bytes(GOOD[:50])
        self.assertRefused(self.load("broken"), status=400)
        answer = self.server.call(
            "POST",
            "/v2/models/broken/infer",
            {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]},
            timeout=PATIENCE)
        self.assertEqual(answer.json()["outputs"][0]["data"], [2, 3, 4, 5])
        (entry, ) = [
            entry for entry in self.server.call("POST", "/v2/repository/index").json() if entry["name"] == "broken"
        ]
        self.assertEqual(entry["state"], "READY")
        self.assertTrue(entry["reason"], "the index says why the reload failed")
        self.server.call("POST", "/v2/repository/models/broken/unload")
