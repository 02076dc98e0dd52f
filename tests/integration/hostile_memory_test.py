"""Strangers that fill the memory of a small server, over both front ends at once."""
import pathlib
import socket
import struct
import tempfile
import time
import unittest

import grpc
from tritonclient.grpc import service_pb2_grpc

import models
from hostile_grpc_test import PREFACE, SERVICE, frame, infer
from tandem_server import PATIENCE, SANITIZED, Server

MEMORY = 1 << 30
MESSAGE = 40 << 20
CLIENTS = 32  # Together they have more than the server.


def headers(path):
    """A header block of literals."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers", "content-type":
        "application/grpc"
    }
    return b"".join(
        bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields.items())


class UnfinishedMessage:
    """A connection that sends a message but for its last byte, as far as the server lets it."""
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.window = {0: 65535, 1: 65535}
        self.initial = 65535
        self.open = True
        self.read = b""

    def send(self, size):
        try:
            self.socket.sendall(PREFACE + frame(4, 0, 0) + frame(1, 4, 1, headers(SERVICE + "ModelInfer")))
            rest = memoryview(struct.pack(">BI", 0, size) + bytes(size - 1))
            while rest and self.open:
                part = min(16384, len(rest), *self.window.values())
                if part <= 0:
                    self.take_frame()
                    continue
                self.socket.sendall(frame(0, 0, 1, bytes(rest[:part])))
                self.window = {stream: room - part for stream, room in self.window.items()}
                rest = rest[part:]
        except OSError:
            pass  # The server has closed it, or gives no more room.

    def take_frame(self):
        head = self.take(9)
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        payload = self.take(int.from_bytes(head[:3], "big"))
        if kind == 8:
            self.window[stream] += int.from_bytes(payload, "big")
        elif kind == 4 and not flags & 1:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == 4:
                    self.window[1] += value - self.initial
                    self.initial = value
            self.socket.sendall(frame(4, 1, 0))
        elif kind == 6 and not flags & 1:
            self.socket.sendall(frame(6, 1, 0, payload))
        elif kind in (1, 3, 7):  # An answer, a reset, or the connection's end.
            self.open = False

    def take(self, size):
        while len(self.read) < size:
            part = self.socket.recv(65536)
            if not part:
                raise ConnectionError("closed")
            self.read += part
        taken, self.read = self.read[:size], self.read[size:]
        return taken


@unittest.skipIf(SANITIZED, "sanitizers need more memory than this server may have")
class FullMemory(unittest.TestCase):
    def test_unfinished_requests_do_not_end_a_small_server(self):
        with tempfile.TemporaryDirectory() as folder:
            repository = pathlib.Path(folder)
            models.place(repository, "bias", models.bias())
            with Server(repository, memory=MEMORY) as server:
                sockets = self.fill_rest(server) + self.fill_grpc(server)
                server.check_alive()
                self.assertLess(server.resident_bytes(), MEMORY // 2)
                for held in sockets:
                    held.close()
                with grpc.insecure_channel(server.grpc) as channel:
                    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
                    stub.ModelInfer(infer(), timeout=PATIENCE, wait_for_ready=True)
                self.assertEqual(server.call("GET", "/v2/health/ready").status, 200)
                self.assertEqual(server.stop(), 0)

    def fill_rest(self, server):
        sockets = []
        for _ in range(CLIENTS // 4):
            held = socket.create_connection(("127.0.0.1", server.http_port), timeout=PATIENCE)
            sockets.append(held)
            try:
                held.sendall(b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % MESSAGE)
                held.sendall(bytes(MESSAGE - 1))
            except OSError:
                pass  # Refused.
        return sockets

    def fill_grpc(self, server):
        sockets = []
        end = time.monotonic() + PATIENCE
        for _ in range(CLIENTS):
            if time.monotonic() > end:
                break
            held = UnfinishedMessage(server.grpc_port)
            held.socket.settimeout(2)
            sockets.append(held.socket)
            held.send(MESSAGE)
            if len(sockets) == 1:
                self.assertTrue(held.open, "the first is held")
        return sockets


if __name__ == "__main__":
    unittest.main()
