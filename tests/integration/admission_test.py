"""Requests that cannot be answered in time: refused when they arrive, with the reason, and never computed."""
import time

import numpy as np
import tritonclient.grpc
import tritonclient.utils

import models
from raw_http import Connection, HostileTest, slow_body
from tandem_server import until


class Admission(HostileTest):
    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())

    def learn(self, steps=20_000, runs=3):
        """Runs that the server learns from; how long the shortest took, in milliseconds."""
        times = []
        for _ in range(runs):
            begun = time.monotonic()
            self.assertEqual(self.send(slow_body(steps)).status, 200)
            times.append(1000 * (time.monotonic() - begun))
        return min(times)

    def runs(self):
        return self.server.metric('nv_inference_exec_count{model="slow",version="1"}')

    def test_what_would_be_late_is_refused_while_others_run(self):
        took = self.learn()
        # Minutes, of which nothing is known: it holds the device until it goes.
        with Connection(self.server.http_port) as holder:
            holder.send(slow_body(20_000_000))
            self.server.wait_busy()
            before = self.runs()
            rejected = self.server.metric('tandem_slo_rejected_total{model="slow"}')
            answer = self.send(slow_body(20_000, slo_ms=took / 4))
            self.assertRefused(answer, "model 'slow': the deadline cannot be met", "ms of work ahead", status=503)
            self.assertIn("Retry-After", answer.headers)
            self.assertEqual(self.server.metric('tandem_slo_rejected_total{model="slow"}'), rejected + 1)
            self.assertEqual(self.server.metric("tandem_queue_depth"), 0)

            patient = Connection(self.server.http_port)
            self.addCleanup(patient.close)
            patient.send(slow_body(10))
            until(lambda: self.server.metric("tandem_queue_depth") == 1, "what has no deadline may wait")
            self.assertEqual(self.runs(), before)
        self.assertEqual(patient.answer().status, 200)

    def test_grpc_says_so_too(self):
        took = self.learn()
        client = tritonclient.grpc.InferenceServerClient(self.server.grpc)
        self.addCleanup(client.close)
        x = tritonclient.grpc.InferInput("x", [1, 256], "FP32")
        x.set_data_from_numpy(np.zeros((1, 256), np.float32))
        steps = tritonclient.grpc.InferInput("steps", [1], "INT64")
        steps.set_data_from_numpy(np.array([20_000]))
        with Connection(self.server.http_port) as holder:
            holder.send(slow_body(20_000_000))
            self.server.wait_busy()
            with self.assertRaisesRegex(tritonclient.utils.InferenceServerException, "the deadline cannot be met") as said:
                client.infer("slow", [x, steps], parameters={"slo_ms": took / 4})
            self.assertIn("UNAVAILABLE", said.exception.status())

    def test_a_model_that_was_slow_once_is_tried_again(self):
        took = self.learn()
        time.sleep(1.2)  # What is known is old then.
        self.assertEqual(self.send(slow_body(10, slo_ms=took / 2)).status, 200)
        for _ in range(30):
            self.assertEqual(self.send(slow_body(10)).status, 200)
        # It is known to be fast by now.
        self.assertEqual(self.send(slow_body(10, slo_ms=took / 2)).status, 200)

    def test_predictions_are_compared_with_runs(self):
        count = 'tandem_run_prediction_ratio_count{model="slow"}'
        self.learn(10, 1)
        before = self.server.metric(count)
        self.learn(10, 4)
        self.assertEqual(self.server.metric(count), before + 4)


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
            answer = self.send(slow_body(20_000, slo_ms=50))
        self.assertRefused(answer, "the deadline passed while the request waited", status=503)

