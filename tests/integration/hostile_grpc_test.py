"""The same over gRPC: messages that are wrong, bytes that are no messages, calls that are given up."""
import os
import socket
import ssl
import struct
import threading
import time

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

import models
from tandem_server import PATIENCE, SANITIZED, SharedServerTest, until

SERVICE = "/inference.GRPCInferenceService/"
METHODS = [
    "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer", "ModelConfig",
    "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus", "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings"
]
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
TOO_LARGE = grpc.StatusCode.RESOURCE_EXHAUSTED
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def infer(model="bias",
          name="x",
          datatype="FP32",
          shape=(1, 4),
          raw=(np.arange(4, dtype="<f4").tobytes(), ),
          **contents):
    message = service_pb2.ModelInferRequest(model_name=model)
    tensor = message.inputs.add(name=name, datatype=datatype, shape=shape)
    for field, values in contents.items():
        getattr(tensor.contents, field).extend(values)
    message.raw_input_contents.extend(raw)
    return message


def frame(kind, flags, stream, payload=b"", length=None):
    """One frame of HTTP/2."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class GrpcHostileTest(SharedServerTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*", "--max-request-bytes", "4194304")

    @classmethod
    def fill(cls, repository):
        for name in ("bias", "add_sub", "slow", "gather"):
            models.place(repository, name, getattr(models, name)())
        for datatype in models.DATATYPES:
            models.place(repository, f"identity_{datatype.lower()}", models.identity(datatype))

    def setUp(self):
        super().setUp()
        self.channel = grpc.insecure_channel(self.server.grpc, options=[("grpc.max_send_message_length", -1)])
        self.addCleanup(self.channel.close)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def assertRefused(self, message, *words, code=INVALID, method="ModelInfer", label="", **options):
        with self.assertRaises(grpc.RpcError, msg=label) as caught:
            getattr(self.stub, method)(message, timeout=PATIENCE, **options)
        codes = code if isinstance(code, (set, tuple)) else {code}
        self.assertIn(caught.exception.code(), codes, f"{label}: {caught.exception.details()!r:.300}")
        text = caught.exception.details()
        self.assertTrue(0 < len(text) < 1500, label)
        for word in words:
            self.assertIn(word, text, label)

    def assertWell(self):
        self.server.check_alive()
        with grpc.insecure_channel(self.server.grpc) as channel:
            answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(infer(), timeout=PATIENCE)
        self.assertEqual(np.frombuffer(answer.raw_output_contents[0], "<f4").tolist(), [1, 2, 3, 4])

    def tearDown(self):
        self.assertWell()
        super().tearDown()


class WrongMessages(GrpcHostileTest):
    def test_raw_contents_that_do_not_fit_are_refused(self):
        good = np.arange(4, dtype="<f4").tobytes()
        cases = {
            "short": [good[:-1]], "long": [good + b"x"], "empty": [b""], "twice": [good, good], "none": [],
            "far too long": [good * 1000]
        }
        for label, raw in cases.items():
            self.assertRefused(infer(raw=raw), label=label)
        self.assertRefused(infer(fp32_contents=[1, 2, 3, 4]), label="raw and contents")
        both = service_pb2.ModelInferRequest(model_name="add_sub")
        for name in ("a", "b"):
            both.inputs.add(name=name, datatype="INT32", shape=[1, 16])
        both.raw_input_contents.append(bytes(64))
        self.assertRefused(both, label="one of two")
        both.raw_input_contents.append(bytes(63))
        self.assertRefused(both, "'b'", label="the second is short")

    def test_contents_that_do_not_fit_are_refused(self):
        for label, contents in {
                "few": {"fp32_contents": [1]}, "many": {"fp32_contents": [1] * 5},
                "another field": {"int_contents": [1, 2, 3, 4]},
                "two fields": {"fp32_contents": [1, 2, 3, 4], "fp64_contents": [1]}, "none": {}
        }.items():
            self.assertRefused(infer(raw=[], **contents), label=label)
        for datatype, field, value in (("INT8", "int_contents", 128), ("INT8", "int_contents", -129),
                                       ("INT16", "int_contents", 2**15), ("UINT8", "uint_contents",
                                                                          256), ("UINT16", "uint_contents", 2**16)):
            self.assertRefused(infer(f"identity_{datatype.lower()}",
                                     datatype=datatype,
                                     shape=[1, 1],
                                     raw=[],
                                     **{field: [value]}),
                               label=f"{datatype} {value}")
        for datatype in ("FP16", "BF16"):
            self.assertRefused(infer(f"identity_{datatype.lower()}",
                                     datatype=datatype,
                                     shape=[1, 1],
                                     raw=[],
                                     fp32_contents=[1]),
                               label=datatype)
        for label, raw in {
                "length beyond the end": struct.pack("<I", 9) + b"a", "largest length": b"\xff" * 4,
                "cut length": b"\x01", "surplus": struct.pack("<I", 0) + b"x"
        }.items():
            self.assertRefused(infer("identity_bytes", datatype="BYTES", shape=[1, 1], raw=[raw]), label=label)

    def test_shapes_and_datatypes_that_do_not_fit_are_refused(self):
        for shape in ([], [4], [1, 5], [-1, 4], [0, 4], [1, -4], [2**63 - 1, 4], [2**62, 4], [2**32, 2**32],
                      [-2**63, 1], [1] * 33, [1] * 10_000, [33, 4]):
            self.assertRefused(infer(shape=shape), "'x'" if len(shape) < 33 else "", label=str(shape)[:60])
        for shape in ([2**61, 8], [2**40, 2**40], [1, 2**60], [0, 2**63 - 1], [2**62, 0]):
            self.assertRefused(infer("identity_int64", datatype="INT64", shape=shape, raw=[b""]), label=str(shape))
        for datatype in ("", "FP64", "fp32", "x" * 5000, "TYPE_FP32"):
            self.assertRefused(infer(datatype=datatype), label=datatype[:20])

    def test_wrong_names_are_refused(self):
        self.assertRefused(infer(name="z"), "'z'")
        self.assertRefused(infer(name=""))
        self.assertRefused(infer(name="n" * 100_000))
        twice = infer()
        twice.inputs.append(twice.inputs[0])
        twice.raw_input_contents.append(twice.raw_input_contents[0])
        self.assertRefused(twice, "'x'", "twice")
        outputs = infer()
        outputs.outputs.add(name="z")
        self.assertRefused(outputs, "'z'")
        outputs.outputs[0].name = "y"
        outputs.outputs.add(name="y")
        self.assertRefused(outputs, "'y'", "twice")
        for model in ("missing", "", "..", "../bias", "bias\0", "bias/1", " ", "n" * 10_000, "bias\n", "/etc/passwd",
                      "%2e%2e"):
            self.assertRefused(infer(model), code={INVALID, NOT_FOUND}, label=repr(model)[:40])
            for method, kind in (("ModelMetadata", "ModelMetadataRequest"), ("ModelConfig", "ModelConfigRequest"),
                                 ("ModelStatistics", "ModelStatisticsRequest")):
                if model or method != "ModelStatistics":  # No name asks for the statistics of all.
                    self.assertRefused(getattr(service_pb2, kind)(name=model),
                                       code={INVALID, NOT_FOUND},
                                       method=method,
                                       label=repr(model)[:40])
            for method in ("RepositoryModelLoad", "RepositoryModelUnload"):
                self.assertRefused(getattr(service_pb2, method + "Request")(model_name=model),
                                   code={INVALID, NOT_FOUND},
                                   method=method,
                                   label=repr(model)[:40])
        for version in ("0", "-1", "9", "x", "1.0", " 1", "9" * 40, "1\0"):
            message = infer()
            message.model_version = version
            self.assertRefused(message, code={INVALID, NOT_FOUND}, label=version)

    def test_wrong_parameters_are_refused(self):
        def with_parameter(name, **value):
            message = infer()
            for field, content in value.items():
                setattr(message.parameters[name], field, content)
            return message

        for name, value in (("timeout", {"string_param": "x"}), ("timeout", {"int64_param": -1}), ("timeout", {
                "double_param": 1.5
        }), ("priority", {"int64_param": -1}), ("priority", {"bool_param": True}), ("slo_ms", {"int64_param": 0}),
                            ("slo_ms", {"double_param": float("nan")}), ("slo_ms", {"double_param": 1e300}),
                            ("slo_ms", {"string_param": "x"}), ("triton_x", {"bool_param": True})):
            self.assertRefused(with_parameter(name, **value), name, label=f"{name} {value}")
        for field, value in (("classification", -1), ("classification", 2**62), ("shared_memory_byte_size", -1)):
            message = infer()
            message.outputs.add(name="y").parameters[field].int64_param = value
            self.assertRefused(message, label=f"{field} {value}")
        for slo in ("0", "-1", "x", "NaN", ""):
            self.assertRefused(infer(), metadata=[("x-slo-ms", slo)], label=slo)
        message = infer("gather", name="i", datatype="INT64", shape=[1], raw=[struct.pack("<q", 99)])
        self.assertRefused(message, "gather")

    def test_wrong_load_parameters_are_refused(self):
        for path in ("../x", "/etc/passwd", "1/../../x", "0/model.onnx", "1/", "", "1/a/b", "n" * 100_000, "1/\0"):
            message = service_pb2.RepositoryModelLoadRequest(model_name="sent")
            message.parameters["config"].string_param = "{}"
            message.parameters["file:" + path].bytes_param = b"x"
            self.assertRefused(message, method="RepositoryModelLoad", label=path[:40])
        for config in ("{", "[" * 100_000, '{"a":' * 100_000, '{"max_batch_size": -1}'):
            message = service_pb2.RepositoryModelLoadRequest(model_name="bias")
            message.parameters["config"].string_param = config
            self.assertRefused(message, method="RepositoryModelLoad", label=config[:20])
        message = service_pb2.RepositoryModelLoadRequest(model_name="bias")
        message.parameters["config"].int64_param = 3
        self.assertRefused(message, method="RepositoryModelLoad")

    def test_bytes_that_are_no_message_are_refused(self):
        noise = [os.urandom(size) for size in (1, 10, 1000, 100_000)
                 ] + [b"\xff" * 1000, b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 5000, b"\x08", b"\x0a\x02\xff\xfe"]
        for method in METHODS:
            call = self.channel.unary_unary(SERVICE + method)
            for data in noise:
                try:
                    call(data, timeout=PATIENCE)
                except grpc.RpcError as error:
                    allowed = {INVALID, NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED}
                    if len(data) > 65536:
                        allowed.add(TOO_LARGE)
                    self.assertIn(error.code(), allowed, f"{method}: {error.details()}")
        for method in ("Nonsense", "", "modelinfer"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.channel.unary_unary(SERVICE + method)(b"", timeout=PATIENCE)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        stream = self.channel.stream_stream(SERVICE + "ModelStreamInfer")
        for data in noise:
            try:
                list(stream(iter([data]), timeout=PATIENCE))
            except grpc.RpcError as error:
                self.assertEqual(error.code(), INVALID, error.details())

    def test_structure_without_content_is_refused_and_takes_no_memory(self):
        def part(field, content):
            size, length = len(content), b""
            while size >= 128:
                length += bytes([size & 127 | 128])
                size >>= 7
            return bytes([field << 3 | 2]) + length + bytes([size]) + content

        limit = 4 << 20
        cases = {
            "inputs": b"\x2a\x00" * (limit // 2), "outputs": b"\x32\x00" * (limit // 2),
            "raw_input_contents": b"\x3a\x00" * (limit // 2), "parameters": b"".join(
                part(4, part(1, b"%x" % i)) for i in range(300_000)), "bytes_contents": part(
                    5, part(5, b"\x42\x00" * (limit // 2 - 20))), "int64_contents": part(
                        5, part(5, part(3, b"\x01" * (limit - 40)))), "shape": part(5, part(3, b"\x01" * (limit - 40))),
            "not known": b"\x78\x01" * (limit // 2), "not a valid": b"\x7b" * (limit // 2)
        }
        def refuse_all():
            for word, data in cases.items():
                self.assertLessEqual(len(data), limit)
                for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
                    with self.assertRaises(grpc.RpcError, msg=word) as caught:
                        self.channel.unary_unary(SERVICE + "ModelInfer")(data, timeout=PATIENCE, compression=compression)
                    self.assertEqual(caught.exception.code(), INVALID, word)
                    self.assertIn(word, caught.exception.details())
                    answers = self.channel.stream_stream(SERVICE + "ModelStreamInfer")(iter([data]),
                                                                                       timeout=PATIENCE,
                                                                                       compression=compression)
                    answer = service_pb2.ModelStreamInferResponse.FromString(list(answers)[0])
                    self.assertIn(word, answer.error_message)

        before = self.server.resident_bytes()
        # Sanitizers keep a shadow of all memory that was ever touched, on every thread's heap; what comes again has one.
        for _ in range(4 if SANITIZED else 1):
            refuse_all()
        after_one = self.server.resident_bytes()
        if not SANITIZED:
            self.assertLess(after_one - before, 64 << 20)
        refuse_all()
        self.assertLess(self.server.resident_bytes() - after_one, 32 << 20)
        load = b"".join(part(3, part(1, b"file:%x" % i)) for i in range(200_000))
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary(SERVICE + "RepositoryModelLoad")(load, timeout=PATIENCE)
        self.assertEqual(caught.exception.code(), INVALID)
        self.assertIn("parameters", caught.exception.details())

    def test_bad_text_in_a_message_is_refused(self):
        good = infer().SerializeToString()
        call = self.channel.unary_unary(SERVICE + "ModelInfer")
        for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"):
            with self.assertRaises(grpc.RpcError) as caught:
                call(good + b"\x1a" + bytes([len(bad)]) + bad, timeout=PATIENCE)
            self.assertEqual(caught.exception.code(), INVALID)

    def test_what_is_too_large_is_refused(self):
        self.assertRefused(infer(raw=[bytes(5 << 20)]), code=TOO_LARGE)
        self.assertRefused(infer(raw=[bytes(40 << 20)]),
                           code=TOO_LARGE,
                           compression=grpc.Compression.Gzip,
                           label="packed")
        self.assertRefused(infer(),
                           code={TOO_LARGE, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL},
                           metadata=[("a", "b" * 1_000_000)])
        self.assertRefused(infer(),
                           code={TOO_LARGE, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL},
                           metadata=[(f"a{i}", "b" * 100) for i in range(5000)])


class LongHeaders(GrpcHostileTest):
    """Blocks of header fields that do not end, or hold far more than any call needs."""
    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.server.grpc_port), timeout=PATIENCE)
        self.addCleanup(sock.close)
        return sock

    @staticmethod
    def begun(size):
        """A field whose value of 2,000,000 bytes has come as far as that."""
        block = b"\x00\x03x-a\x7f\x81\x89\x7a" + b"a" * size
        parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]
        return PREFACE + frame(4, 0, 0) + frame(1, 0, 1, parts[0]) + b"".join(frame(9, 0, 1, part) for part in parts[1:])

    @staticmethod
    def is_cut_off(sock):
        try:
            while sock.recv(65536):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
        return True

    def test_a_block_that_does_not_end_is_cut_off_and_takes_no_memory(self):
        before = self.server.resident_bytes()
        socks = []
        for _ in range(50):
            sock = self.connect()
            try:
                sock.sendall(self.begun(1_000_000))
            except ConnectionError:
                pass
            socks.append(sock)
        for sock in socks:
            self.assertTrue(self.is_cut_off(sock))
        self.assertLess(self.server.resident_bytes() - before, 24 << 20)
        self.assertWell()

    def test_a_long_block_takes_no_time(self):
        used = self.server.cpu_seconds()
        sock = self.connect()
        try:
            sock.sendall(self.begun(1_900_000))
        except ConnectionError:
            pass
        self.assertTrue(self.is_cut_off(sock))
        self.assertLess(self.server.cpu_seconds() - used, 0.5)
        self.assertWell()

    def test_too_much_metadata_fails_its_call_alone(self):
        message = service_pb2.ModelInferRequest(model_name="slow")
        message.inputs.add(name="x", datatype="FP32", shape=[1, 256])
        message.inputs.add(name="steps", datatype="INT64", shape=[1])
        message.raw_input_contents.extend([bytes(1024), struct.pack("<q", 20_000)])
        for size in (9_000, 20_000):
            innocent = self.stub.ModelInfer.future(message, timeout=PATIENCE)
            self.assertRefused(infer(), "metadata", "8192", code=TOO_LARGE, metadata=[("x-a", "a" * size)])
            self.assertEqual(len(innocent.result().outputs), 1)
            self.assertWell()


class GivenUp(GrpcHostileTest):
    def slow(self, steps):
        message = service_pb2.ModelInferRequest(model_name="slow")
        message.inputs.add(name="x", datatype="FP32", shape=[1, 256])
        message.inputs.add(name="steps", datatype="INT64", shape=[1])
        message.raw_input_contents.extend([bytes(1024), struct.pack("<q", steps)])
        return message

    def computed(self):
        return int(self.server.statistics("slow")["inference_count"])

    def test_cancelled_calls_are_not_computed(self):
        before = self.computed()
        running = self.stub.ModelInfer.future(self.slow(20_000_000))
        self.server.wait_busy()
        waiting = [self.stub.ModelInfer.future(self.slow(10)) for _ in range(30)]
        until(lambda: self.server.metric("tandem_queue_depth") == 30, "all are in the queue")
        for call in waiting[:20]:
            call.cancel()
        until(lambda: self.server.metric("tandem_queue_depth") == 10, "those given up are out of the queue")
        running.cancel()
        for call in waiting[20:]:
            call.result(PATIENCE)
        self.server.wait_idle()
        self.assertEqual(self.computed() - before, 10)

    def test_a_channel_that_is_closed_stops_its_calls(self):
        before = self.computed()
        channel = grpc.insecure_channel(self.server.grpc)
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(self.slow(20_000_000))
        self.server.wait_busy()
        channel.close()
        self.assertTrue(call.done())
        self.server.wait_idle()
        self.assertEqual(self.computed(), before)

    def test_a_cancelled_stream_stops_its_requests(self):
        before = self.computed()
        held = threading.Event()

        def requests():
            for _ in range(10):
                yield self.slow(20_000_000)
            held.wait(PATIENCE)

        stream = self.stub.ModelStreamInfer(requests())
        self.server.wait_busy()
        stream.cancel()
        held.set()
        self.server.wait_idle()
        self.assertEqual(self.computed(), before)

    def test_deadlines_that_have_passed_are_not_computed(self):
        before = self.computed()
        # What the server is told of such times may be too little for the model as it knows it: refused before it is over.
        codes = grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE
        for timeout in (0, 1e-6, 0.001):
            with self.assertRaises(grpc.RpcError) as caught:
                self.stub.ModelInfer(self.slow(20_000_000), timeout=timeout)
            self.assertIn(caught.exception.code(), codes)
        self.server.wait_idle()
        self.assertEqual(self.computed(), before)

    def test_a_stream_that_nobody_reads_is_held_back(self):
        def requests():
            for _ in range(2000):
                yield infer("identity_int8", datatype="INT8", shape=[1, 100_000], raw=[bytes(100_000)])

        before = self.server.resident_bytes()
        stream = self.stub.ModelStreamInfer(requests())
        next(stream)
        time.sleep(1)
        self.assertLess(self.server.resident_bytes() - before, 150 << 20)
        stream.cancel()


class Silent(GrpcHostileTest):
    def test_calls_that_send_nothing_leave_room_for_others(self):
        held = threading.Event()
        self.addCleanup(held.set)

        def nothing():
            held.wait(PATIENCE)
            return
            yield

        calls = []
        for method, count in (("inference.GRPCInferenceService/ServerLive", 50), ("grpc.health.v1.Health/Watch", 300)):
            for _ in range(count):
                calls.append(self.channel.stream_stream("/" + method)(nothing()))
        self.assertWell()
        until(lambda: sum(call.done() for call in calls) >= 44, "calls above the limit are turned away")
        self.assertTrue(self.stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE).live)
        until(lambda: all(call.done() for call in calls), "those that stay silent are given up")
        self.assertEqual({call.code() for call in calls},
                         {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class Noise(GrpcHostileTest):
    def test_bytes_that_are_no_http2_end_the_connection(self):
        settings = frame(4, 0, 0)
        cases = {
            "nothing": b"", "noise": os.urandom(10_000),
            "HTTP/1.1": b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), "half a preface": PREFACE[:10],
            "preface and noise": PREFACE + os.urandom(10_000), "a frame of 16 MB": PREFACE + settings +
            frame(0, 0, 1, b"x", length=2**24 - 1), "wrong settings": PREFACE + frame(4, 0, 0, b"x" * 5),
            "settings on a stream": PREFACE + frame(4, 0, 1, bytes(6)), "data without headers": PREFACE + settings +
            frame(0, 1, 1, b"x"), "noise for headers": PREFACE + settings + frame(1, 4, 1, os.urandom(1000)),
            "stream 0": PREFACE + settings + frame(1, 4, 0, b"\x82"), "even stream": PREFACE + settings +
            frame(1, 4, 2, b"\x82"), "settings flood": PREFACE + frame(4, 0, 0) * 20_000,
            "ping flood": PREFACE + settings + frame(6, 0, 0, bytes(8)) * 20_000, "reset flood": PREFACE + settings +
            b"".join(frame(1, 4, 2 * i + 1, b"\x82\x87\x84") + frame(3, 0, 2 * i + 1, bytes(4))
                     for i in range(5000)), "window overflow": PREFACE + settings +
            frame(8, 0, 0, b"\x7f\xff\xff\xff") * 3, "continuation flood": PREFACE + settings +
            frame(1, 0, 1, b"\x82") + frame(9, 0, 1, b"\x00\x01a\x01b" * 1000) * 500,
            "unknown frames": PREFACE + settings + frame(99, 0, 0, bytes(100)) * 1000
        }
        before = self.server.open_files()
        for label, data in cases.items():
            with self.subTest(label):
                with socket.create_connection(("127.0.0.1", self.server.grpc_port), timeout=PATIENCE) as sock:
                    try:
                        sock.sendall(data)
                        sock.settimeout(0.05)
                        while sock.recv(65536):
                            pass
                    except OSError:
                        pass
                self.assertWell()
        until(lambda: self.server.open_files() <= before + 2, "the descriptors are given back")
