"""Thousands of repetitions of hostile requests leave nothing behind: no memory, no threads, no descriptors."""
import base64
import gzip
import json
import struct
import threading

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

import models
from hostile_grpc_test import infer
from raw_http import (GOOD_BODY, INFER, REFUSALS, Connection, HostileTest, binary_body, chunked, floats, request,
                      slow_body)
from tandem_server import PATIENCE, SANITIZED, until

ROUNDS = 20 if SANITIZED else 150
ALLOWED_GROWTH = 24 << 20  # Allocators keep some; a leak of 1 KB a request is more.
HEAD = b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\n"


def http_cases():
    """Label → bytes to send."""
    x = {"name": "x", "shape": [1, 4], "datatype": "FP32"}
    short, short_header = binary_body({"inputs": [{**x, "parameters": {"binary_data_size": 15}}]}, floats(1, 2, 3))
    text, text_header = binary_body(
        {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": 7}}]},
        struct.pack("<I", 99) + b"abc")
    packed = gzip.compress(GOOD_BODY)
    load = "/v2/repository/models/{}/load"
    return {
        "good": request(GOOD_BODY),
        "truncated": request(GOOD_BODY[:40]),
        "nested": request(b'{"inputs":' + b"[" * 20_000),
        "nested control": request(b"[" * 20_000, "/v2/repository/index"),
        "bad UTF-8": request(GOOD_BODY.replace(b"good", b"\xff")),
        "twice": request(GOOD_BODY[:-1] + b', "id": "x"}'),
        "negative length": HEAD + b"Content-Length: -1\r\n\r\n",
        "both": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "negative chunk": chunked(b"2\r\nab\r\n-2\r\nX"),
        "small chunks": chunked(b"".join(b"1\r\n%c\r\n" % c for c in GOOD_BODY) + b"0\r\n\r\n"),
        "JSON length": request(GOOD_BODY, headers=[("Inference-Header-Content-Length", "99999")]),
        "binary size": request(short, headers=[short_header]),
        "text element": request(text, "/v2/models/identity_bytes/infer", headers=[text_header]),
        "dims": request(json.dumps({"inputs": [{**x, "shape": [2**62, 4], "data": [1]}]}).encode()),
        "datatype": request(json.dumps({"inputs": [{**x, "datatype": "INT8", "data": [1, 2, 3, 4]}]}).encode()),
        "missing input": request(b'{"inputs": []}'),
        "packed": request(packed, headers=[("Content-Encoding", "gzip")]),
        "cut packed": request(packed[:30], headers=[("Content-Encoding", "gzip")]),
        "traversal": request(b"", "/v2/models/%2e%2e/config", "GET"),
        "missing model": request(GOOD_BODY, "/v2/models/missing/infer"),
        "missing version": request(GOOD_BODY, "/v2/models/bias/versions/9/infer"),
        "long header": HEAD + b"A: " + b"b" * 50_000,
        "noise": bytes(range(256)) * 4 + b"\r\n\r\n",
        "file path": request(
            json.dumps({"parameters": {"config": "{}", "file:../x": "YQ=="}}).encode(), load.format("sent")),
        "broken file": request(
            json.dumps({"parameters": {"config": "{}",
                                       "file:1/model.onnx": base64.b64encode(b"no model").decode()}}).encode(),
            load.format("sent")),
        "broken config": request(b'{"parameters": {"config": "{"}}', load.format("spare")),
        "run that fails": request(
            json.dumps({"inputs": [{"name": "i", "shape": [1], "datatype": "INT64", "data": [99]}]}).encode(),
            "/v2/models/gather/infer"),
        "no region": request(b'{"key": "/tandem_none", "byte_size": 4}', "/v2/systemsharedmemory/region/r/register"),
        "log setting": request(b'{"log_nothing": 1}', "/v2/logging"),
        "deadline": request(GOOD_BODY, headers=[("X-SLO-Ms", "0.001")]),
    }


class Repetitions(HostileTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*", "--log-level", "error")

    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())

    def measure(self, rounds, once):
        """Runs `once` that often, twice, and compares the server after the first and after the second time."""
        for _ in range(rounds):
            once()
        self.server.wait_idle()
        files, threads, memory = self.server.open_files(), self.server.threads(), self.server.resident_bytes()
        for _ in range(rounds):
            once()
        self.server.wait_idle()
        until(lambda: self.server.open_files() <= files + 1, "the descriptors are given back", 30)
        self.server.wait_for_threads(threads)
        if not SANITIZED:
            self.assertLess(self.server.resident_bytes() - memory, ALLOWED_GROWTH, "memory grows")

    def test_http_mistakes_leave_nothing_behind(self):
        cases = http_cases()

        def once():
            for label, data in cases.items():
                with Connection(self.server.http_port) as connection:
                    answer = connection.send(data).answer()
                if label in ("good", "small chunks", "packed"):
                    self.assertEqual(answer.status, 200, label)
                else:
                    self.assertIn(answer.status, REFUSALS, label)

        self.measure(ROUNDS, once)

    def test_clients_that_leave_leave_nothing_behind(self):
        uploads = [
            HEAD + b"Content-Length: 10000000\r\n\r\n" + b" " * 50_000, HEAD, b"POST",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc"
        ]

        def once():
            for data in uploads:
                for leave in (Connection.close, Connection.reset):
                    connection = Connection(self.server.http_port).send(data)
                    leave(connection)
            running = [Connection(self.server.http_port).send(slow_body(2_000_000)) for _ in range(4)]
            for connection in running:
                connection.reset()

        self.measure(ROUNDS, once)

    def test_grpc_mistakes_leave_nothing_behind(self):
        channel = grpc.insecure_channel(self.server.grpc)
        self.addCleanup(channel.close)
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        raw = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        wrong = [
            infer(raw=[b"x"]),
            infer(shape=[2**62, 4]),
            infer("missing"),
            infer(name="z"),
            infer(datatype="INT8"),
            infer(raw=[]),
            infer("gather", "i", "INT64", [1], [struct.pack("<q", 99)])
        ]

        def once():
            stub.ModelInfer(infer(), timeout=PATIENCE)
            calls = [stub.ModelInfer.future(message, timeout=PATIENCE)
                     for message in wrong] + [raw.future(b"\xff" * 100, timeout=PATIENCE)]
            for call in calls:
                self.assertIn(call.code(), {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND})
            for call in [stub.ModelInfer.future(infer()) for _ in range(3)]:
                call.cancel()
            done = threading.Event()

            def requests():
                yield infer()
                yield infer("missing")
                done.wait(PATIENCE)

            stream = stub.ModelStreamInfer(requests())
            next(stream)
            stream.cancel()
            done.set()
            with grpc.insecure_channel(self.server.grpc) as other:
                service_pb2_grpc.GRPCInferenceServiceStub(other).ServerLive(service_pb2.ServerLiveRequest(),
                                                                            timeout=PATIENCE)

        self.measure(ROUNDS, once)

    def test_reloads_leave_nothing_behind(self):
        def once():
            for call in ("load", "unload", "load"):
                answer = self.server.call("POST", f"/v2/repository/models/spare/{call}", b"")
                self.assertEqual(answer.status, 200, answer)
            self.assertEqual(self.send(request(GOOD_BODY, INFER.replace("bias", "spare"))).status, 200)

        self.measure(ROUNDS // 2, once)
