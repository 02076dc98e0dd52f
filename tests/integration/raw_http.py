"""Speaks to the REST port byte by byte, as no well-behaved client would; and what must hold after whatever was sent."""
import json
import socket
import struct

import numpy as np

import models
from tandem_server import Answer, PATIENCE, SharedServerTest

GOOD_BODY = json.dumps(
    {"id": "good", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}).encode()
INFER = "/v2/models/bias/infer"
# Client mistakes, and what cannot be done now or here. Never 500.
REFUSALS = {400, 401, 404, 405, 408, 409, 411, 413, 414, 415, 431, 499, 501, 503, 505}


def request(body=b"", path=INFER, method="POST", headers=(), length=True):
    """The bytes of a request; `headers` are lines, or (name, value) pairs."""
    lines = [f"{method} {path} HTTP/1.1".encode("latin-1"), b"Host: x"]
    lines += [line if isinstance(line, bytes) else f"{line[0]}: {line[1]}".encode() for line in headers]
    if length:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(body_bytes, headers=()):
    """A request whose body is these bytes, said to be chunked."""
    return request(headers=[b"Transfer-Encoding: chunked", *headers], length=False) + body_bytes


class Connection:
    """A socket to the server that reads whole answers."""
    def __init__(self, port, receive_buffer=None, timeout=PATIENCE):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.pending = b""

    def send(self, data):
        """Sends what can be sent: a server that has refused may stop reading."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return self

    def _more(self):
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.pending += data
        return bool(data)

    def answer(self):
        """The next answer, or None when the connection ends without one."""
        while b"\r\n\r\n" not in self.pending:
            if not self._more():
                return None
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        length = int(headers.get("Content-Length", 0))
        while len(self.pending) < length:
            if not self._more():
                raise AssertionError(f"the answer is cut: {head!r}, {len(self.pending)} of {length} bytes")
        body, self.pending = self.pending[:length], self.pending[length:]
        return Answer(int(status.split()[1]), headers, body)

    def ended(self):
        """Waits for the server to close."""
        while self._more():
            pass
        return True

    def reset(self):
        """Closes without a goodbye."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class HostileTest(SharedServerTest):
    """Tests that send what they should not."""
    @classmethod
    def fill(cls, repository):
        for name in ("bias", "add_sub", "reciprocal", "gather"):
            models.place(repository, name, getattr(models, name)())
        models.place(repository, "spare", models.bias(2))
        for datatype in models.DATATYPES:
            models.place(repository, f"identity_{datatype.lower()}", models.identity(datatype))

    def connect(self, **options):
        connection = Connection(self.server.http_port, **options)
        self.addCleanup(connection.close)
        return connection

    def send(self, data):
        """The answer to these bytes on a fresh connection; None when it was closed without one."""
        with Connection(self.server.http_port) as connection:
            return connection.send(data).answer()

    def assertRefused(self, answer, *words, status=None, label=""):
        """A clear refusal: the right code, a message for people with these words, nothing strange in it."""
        self.assertIsNotNone(answer, f"{label}: closed without an answer")
        self.assertIn(answer.status, {status} if isinstance(status, int) else status or REFUSALS, f"{label}: {answer}")
        text = json.loads(answer.body.decode("utf-8"))["error"]
        self.assertTrue(0 < len(text) < 1500, f"{label}: a message of {len(text)} characters")
        for word in words:
            self.assertTrue(any(choice.lower() in text.lower() for choice in word.split("|")),
                            f"{label}: {word} not in {text}")
        if answer.status == 503:
            self.assertRegex(answer.headers.get("Retry-After", ""), r"^\d+$", label)
        return text

    def assertWell(self):
        """The next request, on a fresh connection, is answered correctly."""
        self.server.check_alive()
        answer = self.send(request(GOOD_BODY))
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()["outputs"][0]["data"], [2, 3, 4, 5])

    def tearDown(self):
        self.assertWell()
        super().tearDown()

    def refuse_all(self, cases, path=INFER, status=400, words=(), headers=()):
        """Every body of `cases` (a list, or label → body) is refused."""
        items = cases.items() if isinstance(cases, dict) else ((repr(case)[:120], case) for case in cases)
        for label, body in items:
            with self.subTest(label):
                body = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
                answer = self.send(request(body, path, headers=headers))
                self.assertRefused(answer, *words, status=status, label=label)


def binary_body(document, *parts):
    """A body in the binary form and its header line."""
    text = json.dumps(document).encode()
    return text + b"".join(parts), ("Inference-Header-Content-Length", str(len(text)))


def floats(*values):
    return np.array(values, "<f4").tobytes()


def slow_body(steps, **parameters):
    """A request that computes for `steps` steps of some ten microseconds."""
    document = {
        "inputs": [{"name": "x", "shape": [1, 256], "datatype": "FP32", "parameters": {"binary_data_size": 1024}},
                   {"name": "steps", "shape": [1], "datatype": "INT64", "data": [steps]}], "parameters": parameters
    }
    body, header = binary_body(document, floats(*[0.5] * 256))
    return request(body, "/v2/models/slow/infer", headers=[header])
