"""Requests that cannot be answered in time: refused when they arrive, with the reason, and never computed."""
import time

import grpc
import numpy as np
import tritonclient.grpc
import tritonclient.utils
from tritonclient.grpc import service_pb2, service_pb2_grpc

import models
from raw_http import Connection, HostileTest, request, slow_body
from tandem_server import TandemTest, until


def body(model, steps, **parameters):
    return slow_body(steps, **parameters).replace(b"/models/slow/", f"/models/{model}/".encode())


class Admission(HostileTest):
    """What is learnt of a model stays, so each test has one of its own."""
    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        for name in ("slow", "over_rest", "over_grpc", "once", "compared", "filler", "unread"):
            models.place(repository, name, models.slow())

    def learn(self, model, steps=20_000, runs=3):
        """Runs that the server learns from; how long the shortest took, in milliseconds."""
        times = []
        for _ in range(runs):
            begun = time.monotonic()
            self.assertEqual(self.send(body(model, steps)).status, 200)
            times.append(1000 * (time.monotonic() - begun))
        return min(times)

    def hold(self):
        """A run of minutes, of which nothing is known: it holds the device until it goes."""
        holder = Connection(self.server.http_port)
        self.addCleanup(holder.close)
        holder.send(body("slow", 20_000_000))
        self.server.wait_busy()
        return holder

    def assertTold(self, headers, most=30_000):
        """When to come again; how many milliseconds that is."""
        wait = int(headers["Tandem-Retry-After-Ms"])
        self.assertGreaterEqual(wait, 1)
        self.assertLessEqual(wait, most)
        self.assertEqual(int(headers["Retry-After"]), -(-wait // 1000), "rounded up")
        return wait

    def test_what_would_be_late_is_refused_while_others_run(self):
        took = self.learn("over_rest")
        holder = self.hold()
        rejected = 'tandem_slo_rejected_total{model="over_rest"}'
        runs = 'nv_inference_exec_count{model="over_rest",version="1"}'
        before = self.server.metric(rejected), self.server.metric(runs)
        answer = self.send(body("over_rest", 20_000, slo_ms=took * 0.7))
        self.assertRefused(answer, "model 'over_rest': the deadline cannot be met", "ms of work ahead", status=503)
        self.assertTold(answer.headers)
        self.assertEqual(self.server.metric(rejected), before[0] + 1)
        self.assertEqual(self.server.metric("tandem_queue_depth"), 0)

        patient = Connection(self.server.http_port)
        self.addCleanup(patient.close)
        patient.send(body("over_rest", 10))
        until(lambda: self.server.metric("tandem_queue_depth") == 1, "what has no deadline may wait")
        self.assertEqual(self.server.metric(runs), before[1])
        holder.close()
        self.assertEqual(patient.answer().status, 200)

    def test_grpc_says_so_too(self):
        took = self.learn("over_grpc")
        client = tritonclient.grpc.InferenceServerClient(self.server.grpc)
        self.addCleanup(client.close)
        x = tritonclient.grpc.InferInput("x", [1, 256], "FP32")
        x.set_data_from_numpy(np.zeros((1, 256), np.float32))
        steps = tritonclient.grpc.InferInput("steps", [1], "INT64")
        steps.set_data_from_numpy(np.array([20_000]))
        holder = self.hold()
        with self.assertRaisesRegex(tritonclient.utils.InferenceServerException, "the deadline cannot be met") as said:
            client.infer("over_grpc", [x, steps], parameters={"slo_ms": took * 0.7})
        self.assertIn("UNAVAILABLE", said.exception.status())
        # Triton's client does not show what follows an error.
        message = service_pb2.ModelInferRequest(model_name="over_grpc",
                                                inputs=[{
                                                    "name": "x",
                                                    "datatype": "FP32",
                                                    "shape": [1, 256]
                                                }, {
                                                    "name": "steps",
                                                    "datatype": "INT64",
                                                    "shape": [1]
                                                }],
                                                raw_input_contents=[bytes(1024), (20_000).to_bytes(8, "little")])
        with grpc.insecure_channel(self.server.grpc) as channel, self.assertRaises(grpc.RpcError) as refused:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(message,
                                                                          metadata=[("x-slo-ms", str(took * 0.7))])
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAVAILABLE)
        trailers = dict(refused.exception.trailing_metadata())
        self.assertIn(int(trailers["retry-after-ms"]), range(1, 30_001))
        holder.close()

    def test_a_large_body_that_would_come_in_vain_is_not_asked_for(self):
        for _ in range(40):
            self.assertEqual(self.send(body("unread", 10)).status, 200, "none of them names a priority")
        took = self.learn("filler")
        path = "/v2/models/unread/infer"
        rejected = 'tandem_slo_rejected_total{model="unread"}'
        before = self.server.metric(rejected), self.server.statistics("unread")["inference_stats"]["fail"]["count"]
        holder = self.hold()
        fillers = [self.connect().send(body("filler", 20_000, priority=1)) for _ in range(10)]
        until(lambda: self.server.metric("tandem_queue_depth") == 10, "what is of a more urgent level waits")

        def head(*headers, length=64 << 20):
            lines = [("Content-Length", length), *headers]
            return request(path=path, headers=lines, length=False)

        def refused(*headers):
            """One a second is let come, to see what it says: its body is waited for. The next is not."""
            while True:
                client = Connection(self.server.http_port, timeout=0.3)
                self.addCleanup(client.close)
                try:
                    answer = client.send(head(impossible, *headers)).answer()
                except TimeoutError:
                    continue
                if answer.status != 100:
                    return client, answer

        # None of the body is sent: without an answer to the head alone, these would wait for ever.
        impossible = ("X-SLO-Ms", took * 3)
        for expect in ([], [("Expect", "100-continue")], [("Expect", "100-continue")]):
            client, answer = refused(*expect)
            self.assertRefused(answer, "model 'unread': the deadline cannot be met", status=503)
            self.assertTold(answer.headers)
            self.assertEqual(answer.headers["Connection"], "close")
            self.assertTrue(client.ended())
        self.assertGreaterEqual(self.server.metric(rejected), before[0] + 3)
        self.assertEqual(self.server.statistics("unread")["inference_stats"]["fail"]["count"] - before[1],
                         self.server.metric(rejected) - before[0])

        # Without a deadline, or with one that can be met, the body is wanted.
        for headers in ([], [("X-SLO-Ms", 3_600_000)]):
            self.assertEqual(self.connect().send(head(*headers, ("Expect", "100-continue"))).answer().status, 100)
        # A small body is read, and the connection lives on.
        client = self.connect()
        for _ in range(2):
            self.assertRefused(client.send(body("unread", 10, slo_ms=took * 3)).answer(), "cannot be met", status=503)
        for filler in fillers:
            filler.close()
        until(lambda: self.server.metric("tandem_queue_depth") == 0, "nobody waits for them")
        holder.close()

    def test_a_model_that_was_slow_once_is_tried_again(self):
        took = self.learn("once")
        time.sleep(1.2)  # What is known is old then.
        self.assertEqual(self.send(body("once", 10, slo_ms=took / 2)).status, 200)
        for _ in range(30):
            self.assertEqual(self.send(body("once", 10)).status, 200)
        # It is known to be fast by now.
        self.assertEqual(self.send(body("once", 10, slo_ms=took / 2)).status, 200)

    def test_predictions_are_compared_with_runs(self):
        count = 'tandem_run_prediction_ratio_count{model="compared"}'
        self.assertEqual(self.server.metric(count), 0)
        self.learn("compared", 10, 4)
        self.assertEqual(self.server.metric(count), 4, "the first run, too: the warm-up has said what to expect")


class Restart(TandemTest):
    def send(self, server, data):
        with Connection(server.http_port) as connection:
            return connection.send(data).answer()

    def test_what_was_learnt_is_known_after_a_restart(self):
        repository, state = self.folder / "models", self.folder / "state"
        models.place(repository, "slow", models.slow())
        server = self.start(repository, "--state", state)
        took = []
        for _ in range(4):
            begun = time.monotonic()
            self.assertEqual(self.send(server, slow_body(20_000)).status, 200)
            took.append(1000 * (time.monotonic() - begun))
        impossible = slow_body(10, slo_ms=min(took) * 0.3)
        self.assertEqual(server.stop(), 0)

        server = self.start(repository, "--state", state)
        answer = self.send(server, impossible)
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("the deadline cannot be met", answer.error)
        self.assertEqual(self.send(server, slow_body(10)).status, 200, "without a deadline nothing is refused")
        self.assertEqual(server.stop(), 0)

        file = state / "learnt-runs"
        file.write_bytes(b"\0garbage\n" * 1000)
        server = self.start(repository, "--state", state)
        self.assertEqual(self.send(server, impossible).status, 200, "nothing is known")
        self.assertEqual(server.stop(), 0)
        warnings = [line for line in server.log().splitlines() if str(file) in line]
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn("ignored", warnings[0])
        self.assertTrue(file.read_text().startswith("tandem learnt runs"), "it was written anew")

    def test_a_server_without_training_keeps_it_too_and_two_do_not_share_one_file(self):
        repository, state = self.folder / "models", self.folder / "state"
        models.place(repository, "slow", models.slow())
        flags = ("--state", state, "--allow-training", "false")
        first, second = self.start(repository, *flags), self.start(repository, *flags)
        for server in (second, first):
            self.assertEqual(self.send(server, slow_body(10)).status, 200)
        self.assertEqual(second.stop(), 0)
        self.assertIn("in use by process", second.log())
        self.assertFalse((state / "learnt-runs").exists())
        self.assertEqual(first.stop(), 0)
        self.assertTrue((state / "learnt-runs").exists())


class FullQueue(HostileTest):
    flags = ("--max-queue", "2")

    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        for name in ("slow", "queued"):
            models.place(repository, name, models.slow())

    def test_tells_how_long_what_waits_takes(self):
        begun = time.monotonic()
        self.assertEqual(self.send(body("queued", 100_000)).status, 200)
        took = 1000 * (time.monotonic() - begun)
        holder = self.connect().send(body("slow", 20_000_000))
        self.server.wait_busy()
        waiting = [self.connect().send(body("queued", 100_000)) for _ in range(2)]
        until(lambda: self.server.metric("tandem_queue_depth") == 2, "the queue is full")
        answer = self.send(body("queued", 10))
        self.assertRefused(answer, "the queue is full", status=503)
        # The first run is what is known of two more; the one that runs is known by the warm-up.
        wait = int(answer.headers["Tandem-Retry-After-Ms"])
        self.assertGreater(wait, took / 2)
        self.assertLess(wait, 20 * took)
        self.assertEqual(int(answer.headers["Retry-After"]), -(-wait // 1000), "rounded up")
        for client in (*waiting, holder):
            client.close()
        until(lambda: self.server.metric("tandem_queue_depth") == 0, "nobody waits for them")


class Queue(HostileTest):
    flags = ("--admission", "queue")

    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())

    def test_lets_wait_whatever_finds_room(self):
        self.assertEqual(self.send(slow_body(20_000)).status, 200)
        with Connection(self.server.http_port) as holder:
            holder.send(slow_body(20_000_000))
            self.server.wait_busy()
            answer = self.send(slow_body(20_000, slo_ms=500))
        self.assertRefused(answer, "the deadline passed while the request waited", status=503)

