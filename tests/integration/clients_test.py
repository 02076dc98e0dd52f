"""Unmodified tritonclient (HTTP, gRPC, and both with asyncio) makes every call it has, and checks the answers."""
import asyncio
import queue

import numpy as np

import models
from control_calls import ControlCalls
from inference_calls import InferenceCalls, labels_file
from tandem_server import SharedServerTest
from triton_clients import Client


class ClientTest(SharedServerTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*")
    kind = None

    @classmethod
    def fill(cls, repository):
        for name in ("add_sub", "mlp", "convolution", "nonzero", "bias"):
            models.place(repository, name, getattr(models, name)())
        models.place(repository,
                     "optional_bias",
                     models.optional_bias(),
                     config="""
            input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] }
            input { name: "bias" data_type: TYPE_FP32 dims: 4 optional: true }""")
        models.place(repository, "spare", models.bias(2))
        models.place(repository, "squeezenet", models.LIGHT_MODELS / "light_squeezenet.onnx")
        for datatype in models.DATATYPES:
            models.place(repository, f"identity_{datatype.lower()}", models.identity(datatype))
        models.place(repository,
                     "labelled",
                     models.identity("FP32", ("batch", 4)),
                     config="""max_batch_size: 8
            input { name: "x" data_type: TYPE_FP32 dims: 4 }
            output { name: "y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }""")
        labels_file(repository / "labelled")
        models.place(repository, "broken", models.bias()).write_bytes(b"\x08\x08 this is no model")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = Client(cls.kind, cls.server, **({"concurrency": 4} if cls.kind == "http" else {}))
        cls.addClassCleanup(cls.client.close)


class HttpBodies:
    def test_takes_a_body_made_by_hand(self):
        x = np.arange(4, dtype=np.float32).reshape(1, 4)
        body, json_size = self.client.generate_request_body([self.client.input("x", x, "FP32")])
        answer = self.server.call("POST", "/v2/models/bias/infer", body,
                                  {"Inference-Header-Content-Length": str(json_size)})
        length = answer.headers["Inference-Header-Content-Length"]
        parsed = self.client.parse_response_body(answer.body, header_length=int(length) if length else None)
        self.assertSame(parsed.as_numpy("y"), x + 1)


class HttpClient(HttpBodies, ControlCalls, InferenceCalls, ClientTest):
    kind = "http"

    def test_infers_asynchronously(self):
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        pending = [
            self.client.async_infer("bias", [self.client.input("x", x * i, "FP32")], request_id=str(i))
            for i in range(20)
        ]
        for i, request in enumerate(pending):
            answer = request.get_result()
            self.assertEqual(answer.get_response()["id"], str(i))
            self.assertSame(answer.as_numpy("y"), x * i + 1)

    def test_percent_encoded_names_are_the_same_model(self):
        for path in ("/v2/models/b%69as", "/v2/models/%62ias/versions/1"):
            self.assertEqual(self.server.call("GET", path).json()["name"], "bias")

    def test_names_where_the_time_went(self):
        answer = self.server.call(
            "POST", "/v2/models/bias/infer",
            {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]},
            {"X-SLO-Ms": "60000"})
        self.assertEqual(answer.json()["outputs"][0]["data"], [2, 3, 4, 5])
        self.assertRegex(answer.headers["Server-Timing"], r"queue;dur=[\d.]+, hold;dur=[\d.]+, compute;dur=[\d.]+")


class GrpcClient(ControlCalls, InferenceCalls, ClientTest):
    kind = "grpc"

    def test_infers_asynchronously(self):
        done = queue.Queue()
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        for i in range(20):
            self.client.async_infer("bias", [self.client.input("x", x * i, "FP32")],
                                    lambda result, error: done.put((result, error)),
                                    request_id=str(i))
        for _ in range(20):
            answer, error = done.get(timeout=30)
            self.assertIsNone(error)
            self.assertSame(answer.as_numpy("y"), x * int(answer.get_response().id) + 1)

    def test_infers_over_a_stream(self):
        done = queue.Queue()
        x = np.arange(4, dtype=np.float32).reshape(1, 4)
        self.client.start_stream(lambda result, error: done.put((result, error)))
        for i in range(200):
            self.client.async_stream_infer("bias", [self.client.input("x", x * i, "FP32")],
                                           request_id=str(i),
                                           enable_empty_final_response=i % 2 == 0)
        ids = set()
        for _ in range(200):
            answer, error = done.get(timeout=30)
            self.assertIsNone(error)
            number = int(answer.get_response().id)
            ids.add(number)
            self.assertSame(answer.as_numpy("y"), x * number + 1)
            self.assertEqual("triton_final_response" in answer.get_response().parameters, number % 2 == 0)
        self.assertEqual(len(ids), 200)
        # A mistake is answered and the stream goes on.
        self.client.async_stream_infer("missing", [self.client.input("x", x, "FP32")], request_id="wrong")
        _, error = done.get(timeout=30)
        self.assertIn("missing", str(error))
        self.client.async_stream_infer("bias", [self.client.input("x", x, "FP32")])
        self.assertIsNone(done.get(timeout=30)[1])
        self.client.stop_stream()
        self.client.start_stream(lambda result, error: done.put((result, error)), compression_algorithm="gzip")
        self.client.async_stream_infer("bias", [self.client.input("x", x, "FP32")])
        self.assertSame(done.get(timeout=30)[0].as_numpy("y"), x + 1)
        self.client.stop_stream(cancel_requests=True)


class HttpAsyncioClient(HttpBodies, ControlCalls, InferenceCalls, ClientTest):
    kind = "http.aio"

    def test_infers_many_at_once(self):
        many_at_once(self)


class GrpcAsyncioClient(ControlCalls, InferenceCalls, ClientTest):
    kind = "grpc.aio"

    def test_infers_many_at_once(self):
        many_at_once(self)

    def test_infers_over_a_stream(self):
        x = np.arange(4, dtype=np.float32).reshape(1, 4)

        async def requests():
            for i in range(100):
                yield {
                    "model_name": "bias" if i != 50 else "missing", "request_id": str(i),
                    "inputs": [self.client.input("x", x * i, "FP32")]
                }

        async def run():
            right, wrong = set(), []
            async for answer, error in self.client.inner.stream_infer(requests()):
                if error is not None:
                    wrong.append(str(error))
                    continue
                number = int(answer.get_response().id)
                self.assertSame(answer.as_numpy("y"), x * number + 1)
                right.add(number)
            return right, wrong

        self.client.called.add("stream_infer")
        right, wrong = self.client.loop.run_until_complete(run())
        self.assertEqual(right, set(range(100)) - {50})
        self.assertEqual(len(wrong), 1)
        self.assertIn("missing", wrong[0])


def many_at_once(test):
    x = np.arange(4, dtype=np.float32).reshape(1, 4)

    async def run():
        return await asyncio.gather(*(test.client.inner.infer("bias", [test.client.input("x", x * i, "FP32")])
                                      for i in range(50)))

    for i, answer in enumerate(test.client.loop.run_until_complete(run())):
        test.assertSame(answer.as_numpy("y"), x * i + 1)
