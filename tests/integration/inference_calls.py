"""What every client asks of inference. Mixed into the test classes of clients_test.py."""
import pathlib
import uuid

import ml_dtypes
import numpy as np
import tritonclient.utils.shared_memory as shared_memory

import models
from onnx_file import NUMPY_TYPES

EDGES = {
    "BOOL": [True, False, True], "BYTES": ["", "text", "Grüße\n\"quoted\"", "x" * 3000],
    "FP32": [0.1, -0.0, 1e-45, 3.4028235e38, -1.1754944e-38], "FP64": [0.1, -0.0, 5e-324, 1.7976931348623157e308],
    "BF16": [0.1, -0.0, 3.38e38, 1e-40], "FP16": [0.1, -0.0, 65504, 6e-8]
}


def edges(datatype):
    """Values at the ends of a datatype, as one batch element."""
    if datatype == "BF16":
        return np.array([EDGES[datatype]], ml_dtypes.bfloat16)
    if datatype in EDGES:
        values = [text.encode() for text in EDGES[datatype]] if datatype == "BYTES" else EDGES[datatype]
        return np.array([values], NUMPY_TYPES[datatype])
    limits = np.iinfo(NUMPY_TYPES[datatype])
    return np.array([[limits.min, 0, 1, limits.max - 1, limits.max]], NUMPY_TYPES[datatype])


def same_bits(left, right):
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype == np.object_:  # tritonclient gives text for BYTES that came as JSON.
        return [str(item, "utf-8") if isinstance(item, bytes) else item for item in left.flat
                ] == [str(item, "utf-8") if isinstance(item, bytes) else item for item in right.flat]
    return left.tobytes() == right.tobytes()


class InferenceCalls:
    def assertSame(self, left, right):
        if not same_bits(left, right):
            self.fail(f"\n{left!r:.500}\nis not\n{right!r:.500}")

    def random_integers(self, rows):
        random = np.random.default_rng(rows)
        return {name: random.integers(-2**31, 2**31, (rows, 16), np.int32) for name in ("a", "b")}

    def ask_add_sub(self, rows=1, **options):
        values = self.random_integers(rows)
        inputs = [self.client.input(name, value, "INT32") for name, value in values.items()]
        answer = self.client.infer("add_sub", inputs, **options)
        for name, value in models.onnxruntime_answers(models.add_sub(), values).items():
            if answer.as_numpy(name) is not None:
                self.assertSame(answer.as_numpy(name), value)
        return answer

    def test_computes_exactly_what_onnxruntime_does(self):
        random = np.random.default_rng(5)
        for name, tensor, output, shape in (("mlp", "x", "y", (5, 64)), ("convolution", "x", "y", (2, 3, 32, 32)),
                                            ("squeezenet", "data_0", "softmaxout_1", (1, 3, 224, 224))):
            with self.subTest(model=name):
                x = random.standard_normal(shape, np.float32)
                expected = models.onnxruntime_answers(self.repository / name / "1/model.onnx", {tensor: x})[output]
                answer = self.client.infer(name, [self.client.input(tensor, x, "FP32")])
                self.assertSame(answer.as_numpy(output), expected)

    def test_carries_every_datatype_unchanged(self):
        for datatype in models.DATATYPES:
            name = f"identity_{datatype.lower()}"
            x = edges(datatype)
            forms = [True] if self.client.is_grpc or datatype in ("FP16", "BF16") else [True, False]
            for binary_in in forms:
                for binary_out in forms:
                    with self.subTest(datatype=datatype, binary_in=binary_in, binary_out=binary_out):
                        answer = self.client.infer(name, [self.client.input("x", x, datatype, binary_in)],
                                                   outputs=[self.client.output("y", binary_out)])
                        self.assertSame(answer.as_numpy("y"), x)

    def test_carries_empty_and_large_tensors(self):
        for columns in (0, 1_000_000):
            x = np.arange(columns, dtype=np.int64).reshape(1, columns)
            answer = self.client.infer("identity_int64", [self.client.input("x", x, "INT64")])
            self.assertSame(answer.as_numpy("y"), x)

    def test_answers_with_a_shape_that_depends_on_the_values(self):
        x = np.array([0, 5, 0, 0, -1, 2, 0, 0], np.int32)
        answer = self.client.infer("nonzero", [self.client.input("x", x, "INT32")])
        self.assertSame(answer.as_numpy("y"), np.array([[1, 4, 5]]))

    def test_leaves_out_an_optional_input(self):
        x = np.ones((2, 4), np.float32)
        answer = self.client.infer("optional_bias", [self.client.input("x", x, "FP32")])
        self.assertSame(answer.as_numpy("y"), x + np.arange(1, 5, dtype=np.float32))
        bias = np.full(4, 10, np.float32)
        answer = self.client.infer("optional_bias",
                                   [self.client.input("x", x, "FP32"),
                                    self.client.input("bias", bias, "FP32")])
        self.assertSame(answer.as_numpy("y"), x + bias)

    def test_answers_with_the_outputs_asked_for(self):
        answer = self.ask_add_sub(outputs=[self.client.output("difference")])
        self.assertIsNone(answer.as_numpy("sum"))
        self.assertIsNotNone(answer.as_numpy("difference"))

    def test_echoes_ids_and_takes_parameters(self):
        answer = self.ask_add_sub(request_id="my request/42",
                                  model_version="1",
                                  priority=2,
                                  timeout=60_000_000,
                                  parameters={"colour": "red", "count": 3, "flag": True, "slo_ms": 60000})
        told = answer.get_response(as_json=True) if self.client.is_grpc else answer.get_response()
        self.assertEqual((told["id"], told["model_name"], told["model_version"]), ("my request/42", "add_sub", "1"))
        self.ask_add_sub(sequence_id=5, sequence_start=True, sequence_end=True)
        self.assertIn("missing", self.refused("404", self.client.infer, "missing", []))

    def test_compresses_both_ways(self):
        x = np.tile(np.arange(50, dtype=np.float32), (4, 2000))
        for algorithm in ("gzip", "deflate"):
            if self.client.is_asyncio and not self.client.is_grpc and algorithm == "deflate":
                continue  # tritonclient's asyncio client unpacks nothing but gzip.
            with self.subTest(algorithm=algorithm):
                answer = self.client.infer("identity_fp32", [self.client.input("x", x, "FP32")],
                                           **self.client.compression(algorithm))
                self.assertSame(answer.as_numpy("y"), x)

    def test_classifies(self):
        x = np.array([[0.25, 3, -1, 2.5], [9, 8, 7, 6]], np.float32)
        for binary in (True, False):
            answer = self.client.infer("labelled", [self.client.input("x", x, "FP32")],
                                       outputs=[self.client.output("y", binary=binary, classes=2)])
            classes = [[text.decode() if isinstance(text, bytes) else text for text in row]
                       for row in answer.as_numpy("y").tolist()]
            self.assertEqual([[(float(text.split(":")[0]), *text.split(":")[1:]) for text in row] for row in classes],
                             [[(3, "1", "dog"), (2.5, "3", "fox")], [(9, "0", "cat"), (8, "1", "dog")]])

    def test_uses_system_shared_memory(self):
        values = self.random_integers(4)
        key, size = f"/tandem_{uuid.uuid4().hex}", 4 * 16 * 4
        region = shared_memory.create_shared_memory_region("data", key, 3 * size)
        self.addCleanup(shared_memory.destroy_shared_memory_region, region)
        shared_memory.set_shared_memory_region(region, [values["a"], values["b"]])
        self.client.register_system_shared_memory("data", key, 3 * size)
        self.addCleanup(self.client.unregister_system_shared_memory)
        status = self.client.get_system_shared_memory_status()
        found = status["regions"]["data"] if self.client.is_grpc else status[0]
        self.assertEqual((found["name"], found["key"], int(found["byte_size"])), ("data", key, 3 * size))

        inputs = [
            self.client.shared_input(name, [4, 16], "INT32", "data", size, offset)
            for name, offset in (("a", 0), ("b", size))
        ]
        self.client.infer("add_sub", inputs, outputs=[self.client.output("sum", shared=("data", size, 2 * size))])
        self.assertSame(shared_memory.get_contents_as_numpy(region, np.int32, [4, 16], 2 * size),
                        values["a"] + values["b"])
        # Only the inputs, only one output.
        answer = self.client.infer("add_sub", inputs)
        self.assertSame(answer.as_numpy("sum"), values["a"] + values["b"])
        mixed = [inputs[0], self.client.input("b", values["b"], "INT32")]
        self.assertSame(self.client.infer("add_sub", mixed).as_numpy("difference"), values["a"] - values["b"])

        self.assertIn("data", self.refused("400", self.client.register_system_shared_memory, "data", key, 4))
        self.refused("400", self.client.register_system_shared_memory, "other", "/tandem_missing", 4)
        self.refused("400", self.client.register_system_shared_memory, "other", key, 3 * size + 1_000_000)
        self.client.unregister_system_shared_memory("data")
        self.refused("400", self.client.infer, "add_sub", inputs)
        self.client.get_system_shared_memory_status()
        self.assertIn("data", self.refused("404", self.client.get_system_shared_memory_status, "data"))

    def test_says_what_is_wrong_with_a_request(self):
        x = np.zeros((1, 16), np.int32)
        a, b = (self.client.input(name, x, "INT32") for name in ("a", "b"))
        extra = self.client.input("c", x, "INT32")
        floats = self.client.input("a", x.astype(np.float32), "FP32")
        narrow = self.client.input("a", x[:, :8], "INT32")
        tall = self.client.input("a", np.zeros((2, 16), np.int32), "INT32")
        for inputs, words in (([a], ["'b'"]), ([a, b, extra], ["'c'"]), ([floats, b], ["'a'", "FP32", "INT32"]),
                              ([narrow, b], ["'a'", "8", "16"]), ([tall, b], ["batch", "2",
                                                                              "1"]), ([a, b, b], ["'b'", "twice"])):
            with self.subTest(words=words):
                message = self.refused("400", self.client.infer, "add_sub", inputs)
                for word in words:
                    self.assertIn(word, message)
        message = self.refused("400", self.client.infer, "add_sub", [a, b], outputs=[self.client.output("product")])
        self.assertIn("'product'", message)
        self.refused("404", self.client.infer, "add_sub", [a, b], model_version="9")
        self.ask_add_sub()


def labels_file(folder: pathlib.Path):
    (folder / "labels.txt").write_text("cat\ndog\ncow\nfox\n")
