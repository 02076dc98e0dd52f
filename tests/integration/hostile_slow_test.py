"""Clients that are slow, many, or gone: cases 17, 18 and 19 of the list in the protocol notes."""
import json
import select
import socket
import threading
import time
import zlib

import numpy as np

import models
from raw_http import GOOD_BODY, Connection, HostileTest, binary_body, request, slow_body
from tandem_server import PATIENCE, TandemTest, until

HEAD = b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\n"


class Drip(threading.Thread):
    """Sends `data`, then `more` byte by byte, or reads byte by byte, until the server ends it."""
    def __init__(self, port, data, more=b"", read=False, pause=0.1):
        super().__init__(daemon=True)
        self.connection = Connection(port, receive_buffer=4096 if read else None)
        self.data, self.more, self.read, self.pause = data, more, read, pause
        self.ended_after = None
        self.begun = time.monotonic()
        self.start()

    def run(self):
        try:
            self.connection.socket.sendall(self.data)
            end = time.monotonic() + PATIENCE
            position = 0
            while time.monotonic() < end:
                if self.read:
                    if not self.connection.socket.recv(1):
                        break
                elif self.more:
                    self.connection.socket.sendall(self.more[position % len(self.more):][:1])
                    position += 1
                time.sleep(self.pause)
                if not self.read and self.closed():
                    break
            else:
                return
        except OSError:
            pass
        self.ended_after = time.monotonic() - self.begun

    def closed(self):
        try:
            return self.connection.socket.recv(4096, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False


class SlowClients(HostileTest):
    flags = ("--header-timeout-secs", "0.5", "--idle-timeout-secs", "1")

    def test_slow_clients_are_let_go_and_hinder_nobody(self):
        port = self.server.http_port
        large = json.dumps({
            "inputs": [{
                "name": "x", "shape": [1, 2_000_000], "datatype": "INT8", "parameters": {"binary_data_size": 2_000_000}
            }], "parameters": {"binary_data_output": True}
        }).encode()
        question = request(large + bytes(2_000_000),
                           "/v2/models/identity_int8/infer",
                           headers=[("Inference-Header-Content-Length", len(large))])
        kinds = {
            "says nothing": lambda: Drip(port, b""), "header byte by byte": lambda: Drip(port, b"POST /", b"a"),
            "headers without end": lambda: Drip(port, HEAD, b"a: b\r\n"),
            "half a header": lambda: Drip(port, HEAD + b"Content-Le"),
            "fast start, then nothing":
                lambda: Drip(port, HEAD + b"Content-Length: 10000000\r\n\r\n" + bytes(3_000_000)),
            "fast start, then byte by byte":
                lambda: Drip(port, HEAD + b"Content-Length: 10000000\r\n\r\n" + bytes(3_000_000), b" "),
            "body byte by byte": lambda: Drip(port, HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
            "no body at all": lambda: Drip(port, HEAD + b"Content-Length: 100\r\n\r\n"),
            "chunks byte by byte": lambda: Drip(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            "answer byte by byte": lambda: Drip(port, question, read=True),
            "idle after a request": lambda: Drip(port, request(GOOD_BODY)),
            "blank lines": lambda: Drip(port, b"", b"\r\n")
        }
        before = self.server.open_files()
        drips = [(kind, make()) for kind, make in kinds.items() for _ in range(5)]
        waits = []
        # What a slow reader has not read yet hides that its connection has ended: the server's descriptors tell.
        senders = [(kind, drip) for kind, drip in drips if not drip.read]
        while any(drip.is_alive() for _, drip in senders) or self.server.open_files() > before + 1:
            self.assertLess(time.monotonic() - drips[0][1].begun, PATIENCE, "clients are never let go")
            begun = time.monotonic()
            self.assertWell()
            waits.append(time.monotonic() - begun)
            time.sleep(0.05)
        for kind, drip in senders:
            self.assertIsNotNone(drip.ended_after, f"{kind}: never let go")
        for _, drip in drips:
            drip.connection.close()
        self.assertLess(np.median(waits), 1, "others had to wait")


class HeavyRequests(HostileTest):
    flags = ("--max-request-bytes", str(64 << 20))

    def longest_wait_beside(self, questions):
        """How long all questions took together, and the longest wait for a probe beside them."""
        done = threading.Event()
        answers = []

        def ask(data):
            with Connection(self.server.http_port) as connection:
                answers.append(connection.send(data).answer())

        def ask_all():
            threads = [threading.Thread(target=ask, args=(data, )) for data in questions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            done.set()

        begun = time.monotonic()
        threading.Thread(target=ask_all, daemon=True).start()
        longest = 0
        while not done.is_set():
            asked = time.monotonic()
            self.assertEqual(self.server.call("GET", "/v2/health/live").status, 200)
            longest = max(longest, time.monotonic() - asked)
            time.sleep(0.005)
        self.assertEqual(len(answers), len(questions))
        return time.monotonic() - begun, longest, {answer.status for answer in answers}

    def test_heavy_requests_hinder_nobody(self):
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = packer.compress(bytes(65 << 20)) + packer.flush()
        count = 15_000_000
        ones = b"1" + b",1" * (count - 1)
        numbers = b'{"inputs":[{"name":"x","shape":[1,%d],"datatype":"INT8","data":[%s]}]}' % (count, ones)
        noise = np.random.default_rng(1).integers(0, 256, 20 << 20, np.uint8).tobytes()
        packed_answer, header = binary_body(
            {"inputs": [{"name": "x", "shape": [1, len(noise)], "datatype": "INT8",
                         "parameters": {"binary_data_size": len(noise)}}],
             "parameters": {"binary_data_output": True}}, noise)
        path, accept = "/v2/models/identity_int8/infer", ("Accept-Encoding", "gzip")
        cases = {"packed bodies": ([request(bomb, headers=[("Content-Encoding", "gzip")])] * 8, {413}),
                 "large JSON": ([request(numbers, path)] * 3, {200}),
                 "answers to be packed": ([request(packed_answer, path, headers=[header, accept])] * 2, {200})}
        for label, (questions, statuses) in cases.items():
            with self.subTest(label):
                total, longest, seen = self.longest_wait_beside(questions)
                self.assertEqual(seen, statuses)
                self.assertLess(longest, max(total / 4, 0.5), f"of {total:.1f} s")


class ManyClients(TandemTest):
    def serve(self, *flags, **options):
        repository = self.folder / "models"
        models.place(repository, "bias", models.bias())
        return self.start(repository, *flags, **options)

    def answers(self, server):
        try:
            with Connection(server.http_port, timeout=5) as connection:
                answer = connection.send(request(GOOD_BODY)).answer()
                return answer is not None and answer.status == 200
        except OSError:
            return False

    def crowd(self, port, count):
        sockets = []
        for _ in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            self.addCleanup(sock.close)
            sock.connect_ex(("127.0.0.1", port))
            sockets.append(sock)
        return sockets

    def test_more_connections_than_descriptors(self):
        server = self.serve(open_files=128)
        before = server.open_files()
        crowd = [
            sock for port in (server.http_port, server.grpc_port, server.metrics_port)
            for sock in self.crowd(port, 250)
        ]
        time.sleep(0.5)
        server.check_alive()
        self.assertLessEqual(server.open_files(), 128)
        until(lambda: self.answers(server), "a request gets through although the crowd stays")
        used = server.cpu_seconds()
        time.sleep(1)
        self.assertLess(server.cpu_seconds() - used, 0.7, "the server spins")
        for sock in crowd:
            sock.close()
        until(lambda: self.answers(server), "a request gets through when the crowd has gone")
        until(lambda: server.open_files() <= before + 2, "the descriptors are given back")
        # Models can still be loaded: a part of the descriptors is kept for them.
        self.assertEqual(server.call("GET", "/v2/models/bias/ready").status, 200)

    def test_more_connections_than_allowed(self):
        server = self.serve("--max-connections", "20")
        crowd = self.crowd(server.http_port, 200)
        until(lambda: self.answers(server), "a request gets through although the crowd stays")
        self.assertLess(server.open_files(), 120)
        for sock in crowd:
            sock.close()
        until(lambda: self.answers(server), "a request gets through when the crowd has gone")

    def test_thousands_of_connections_come_and_go(self):
        server = self.serve()
        before, threads = server.open_files(), server.threads()
        for _ in range(10):
            crowd = self.crowd(server.http_port, 300)
            for sock in crowd[::2]:
                sock.close()
            for sock in crowd[1::2]:
                try:
                    sock.send(b"GET /v2 HT")
                except OSError:
                    pass
                sock.close()
        self.assertTrue(self.answers(server))
        until(lambda: server.open_files() <= before + 1, "the descriptors are given back")
        # Fewer will do: the thread that loads the models at the start leaves in its own time.
        server.wait_for_threads(threads)


class GoneClients(HostileTest):
    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())

    def computed(self):
        return int(self.server.statistics("slow")["inference_count"])

    def behind_a_run(self, count):
        """A request whose run ends some day, and so many that wait for it: longer where it is over before they are there."""
        for steps in (30_000, 120_000, 480_000, 1_920_000):
            first = self.connect().send(slow_body(steps))
            self.server.wait_busy()
            waiting = [self.connect().send(slow_body(10)) for _ in range(count)]
            while not select.select([first.socket], [], [], 0)[0]:
                if self.server.metric("tandem_queue_depth") == count:
                    return first, waiting
            for connection in (first, *waiting):
                self.assertEqual(connection.answer().status, 200)
                connection.close()
        raise AssertionError("no run is so long that others come before it ends")

    def test_gone_in_the_middle_of_an_upload(self):
        before, threads = self.server.open_files(), self.server.threads()
        head = HEAD + b"Content-Length: 100000000\r\n\r\n"
        for size in (0, 1, 1000, 1_000_000):
            for leave in (Connection.close, Connection.reset):
                connection = self.connect()
                connection.send(head + b" " * size)
                leave(connection)
        for data in (b"", b"P", HEAD[:20], HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"):
            for leave in (Connection.close, Connection.reset):
                connection = self.connect()
                connection.send(data)
                leave(connection)
        until(lambda: self.server.open_files() <= before, "the descriptors are given back")
        self.server.wait_for_threads(threads)

    def test_gone_in_the_middle_of_a_run(self):
        def half_close_and_go(connection):
            connection.socket.shutdown(socket.SHUT_WR)
            time.sleep(0.1)
            connection.reset()

        for leave in (Connection.close, Connection.reset, half_close_and_go):
            before = self.computed()
            connection = self.connect()
            connection.send(slow_body(20_000_000))  # Minutes.
            self.server.wait_busy()
            leave(connection)
            self.server.wait_idle()
            self.assertEqual(self.computed(), before)

    def test_closing_only_the_sending_side_is_not_going(self):
        def final(connection):
            """The answer behind the line that asks whether anybody is there."""
            answer = connection.answer()
            return connection.answer() if answer.status == 100 else answer

        first, waiting = self.behind_a_run(5)
        quick = self.connect().send(request(b"", "/v2/health/live", "GET"))
        for connection in (first, *waiting, quick):
            connection.socket.shutdown(socket.SHUT_WR)
        for connection in (quick, first, *waiting):
            self.assertEqual(final(connection).status, 200)
            self.assertTrue(connection.ended())

    def test_gone_while_waiting(self):
        before = self.computed()
        first = self.connect().send(slow_body(20_000_000))
        self.server.wait_busy()
        waiting = [self.connect().send(slow_body(10)) for _ in range(30)]
        until(lambda: self.server.metric("tandem_queue_depth") == 30, "all are in the queue")
        for connection in waiting[:20]:
            connection.reset()
        until(lambda: self.server.metric("tandem_queue_depth") == 10, "those who left are out of the queue")
        first.close()
        for connection in waiting[20:]:
            self.assertEqual(connection.answer().status, 200)
        self.assertEqual(self.computed() - before, 10)

    def test_deadlines_pass_in_the_queue_without_compute(self):
        before = self.computed()
        first = self.connect().send(slow_body(20_000_000))
        self.server.wait_busy()
        waiting = [self.connect().send(slow_body(10, timeout=100_000)) for _ in range(5)]
        until(lambda: self.server.metric("tandem_queue_depth") == 5, "all are in the queue")
        time.sleep(0.2)
        first.close()
        for connection in waiting:
            self.assertRefused(connection.answer(), "deadline", status=503)
        self.assertEqual(self.computed(), before)

    def test_gone_in_the_middle_of_an_answer(self):
        before = self.server.open_files()
        columns = 4_000_000
        text = json.dumps({
            "inputs": [{
                "name": "x", "shape": [1, columns], "datatype": "INT8", "parameters": {"binary_data_size": columns}
            }]
        }).encode()
        for leave in (Connection.close, Connection.reset):
            connection = self.connect(receive_buffer=4096)
            connection.send(
                request(text + bytes(columns),
                        "/v2/models/identity_int8/infer",
                        headers=[("Inference-Header-Content-Length", len(text))]))
            connection.socket.recv(1)
            leave(connection)
        until(lambda: self.server.open_files() <= before, "the descriptors are given back")
