"""A deterministic job of two threads ends with the same bits, whatever is done with it: orders to use fewer threads, requests
that take cores, pauses, operators that wait at the gate, a server that would give it another number of threads."""
import hashlib
import os
import signal
import threading

import numpy as np

import models
from colocation_test import LONG, ColocationTest
from cpu_limits import apart
from hostile_load_test import Asker
from onnx_file import Graph
from raw_http import slow_body
from tandem_server import PATIENCE, until

JOB = {"deterministic": True, "batch_size": 256, "epochs": None, "steps": 40, "evaluation": None, "clip_norm": 0.1}
TWO_THREADS = {**JOB, "threads": 2}


def wide():
    """FP32 [batch,64] to [batch,10]: operators that take milliseconds on any machine, so they are heavy. The gradients of its
    normalisation are sums over all examples, of which each thread makes a part."""
    random = np.random.default_rng(1)
    graph = Graph().input("x", "FP32", ["batch", 64]).output("y", "FP32", ["batch", 10])
    for name, shape in {"w1": (64, 32768), "b1": (32768, ), "w2": (32768, 10), "b2": (10, )}.items():
        graph.initializer(name, random.standard_normal(shape, np.float32))
    graph.initializer("scale", np.ones(32768, np.float32)).initializer("shift", np.zeros(32768, np.float32))
    graph.node("Gemm", ["x", "w1", "b1"], ["h"]).node("LayerNormalization", ["h", "scale", "shift"], ["n"])
    return graph.node("Relu", ["n"], ["r"]).node("Gemm", ["r", "w2", "b2"], ["s"]).node("Softmax", ["s"], ["y"])


class SameBits(ColocationTest):
    expected = None  # The result of the job alone, for all tests.

    def setUp(self):
        super().setUp()
        models.place(self.repository, "digits", wide())
        models.place(self.repository, "slow", models.slow())
        if SameBits.expected is None:
            self.serve("none")
            SameBits.expected = self.finish(self.submit(**TWO_THREADS)["id"])
            self.server.stop()

    def serve(self, policy, *flags):
        """Apart from others on a machine that they keep busy, where an idle trainer would never get on; and on two cores,
        so that requests and other trainers take some of those that a trainer would use."""
        enter, remove = apart()
        self.addCleanup(remove)
        cores = sorted(os.sched_getaffinity(0))[:2]
        keep = ["taskset", "--cpu-list", ",".join(map(str, cores))]
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 "--colocation",
                                 policy,
                                 *flags,
                                 within=lambda command: (enter or list)(keep + command))

    def finish(self, job_id):
        """What tells the bytes of its result from others."""
        self.wait(job_id, "succeeded", seconds=4 * PATIENCE)
        return hashlib.sha256(self.result(job_id)).hexdigest()

    def iterations(self, job_id):
        """The steps that it has made, without the delay with which they are written down."""
        return self.server.metric(f'tandem_training_iterations_total{{job="{job_id}"}}')

    def make_steps(self, job_id, steps):
        end = self.iterations(job_id) + steps
        until(lambda: self.iterations(job_id) >= end, "it makes steps", 4 * PATIENCE)

    def pause(self, job_id):
        before = self.held(job_id, "paused")
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: self.held(job_id, "paused") > before, "it waits")

    def resume(self, job_id):
        self.call("POST", f"/jobs/{job_id}/resume")

    def begin_paused(self, **fields):
        """A job whose trainer waits at its first operator."""
        job_id = self.submit(**fields)["id"]
        until(lambda: any(told["job"] == job_id for told in self.state_now()["trainers"]), "a trainer")
        self.pause(job_id)
        return job_id

    def ask(self, steps, pause=0.0):
        """There are always requests until what is returned is called."""
        stop = threading.Event()
        self.addCleanup(stop.set)
        askers = [Asker(self.server.http_port, slow_body(steps), stop, pause) for _ in range(2)]

        def end():
            stop.set()
            for asker in askers:
                asker.join(PATIENCE)
                self.assertIsNone(asker.broken)
                self.assertEqual({answer.status for answer, _ in asker.answers}, {200})

        until(lambda: all(asker.answers or asker.broken for asker in askers), "all have been answered once")
        return end

    def answered(self):
        return self.server.metric('tandem_request_latency_seconds_count{model="slow",outcome="success"}')

    def test_beside_requests_and_another_trainer(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one core only: nobody is ordered to use fewer")
        self.serve("tandem", "--max-training-jobs", "2")
        other, job_id = self.begin_paused(**LONG), self.begin_paused(**TWO_THREADS)
        ordered = lambda: [told["threads_ordered"] for told in self.state_now()["trainers"] if told["job"] == job_id][0]
        end = self.ask(300, pause=0.01)
        for _ in range(2):
            answered = self.answered()
            self.resume(job_id)
            until(lambda: ordered() is None, "alone it may use all its threads")
            self.make_steps(job_id, 2)
            self.resume(other)
            until(lambda: ordered() == 1, "it is ordered to use one")
            self.make_steps(job_id, 2)
            self.pause(job_id)
            self.pause(other)
            self.assertGreater(self.answered(), answered, "requests took threads, and gave them back, meanwhile")
        self.resume(job_id)
        end()
        self.assertEqual(self.finish(job_id), self.expected)

    def test_paused_and_resumed(self):
        self.serve("none")
        job_id = self.begin_paused(**TWO_THREADS)
        for _ in range(5):
            self.resume(job_id)
            self.make_steps(job_id, 2)
            self.pause(job_id)
        self.resume(job_id)
        self.assertEqual(self.finish(job_id), self.expected)

    def test_with_operators_that_wait_at_the_gate(self):
        self.serve("op_gate")
        job_id = self.begin_paused(**TWO_THREADS)
        self.resume(job_id)
        self.make_steps(job_id, 5)
        self.pause(job_id)
        profile = lambda: self.server.call("GET", f"/v2/train/jobs/{job_id}/profile")
        until(lambda: profile().status == 200, "a profile")
        until(lambda: any(op["class"] == "heavy" for op in profile().json()["ops"]), "it was looked at its operators")
        self.assertEqual(self.held(job_id, "requests"), 0)
        end = self.ask(2000)
        self.resume(job_id)
        until(lambda: self.held(job_id, "requests") > 0.5, "operators wait")
        self.assertEqual(self.show(job_id)["state"], "running")
        end()
        self.assertEqual(self.finish(job_id), self.expected)

    def test_on_a_server_that_would_give_it_another_number_of_threads(self):
        self.serve("none", "--training-threads", "2")
        job_id = self.begin_paused(**JOB)
        self.resume(job_id)
        self.make_steps(job_id, 10)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0)
        self.serve("none", "--training-threads", "1")
        self.assertEqual(self.finish(job_id), self.expected)
        first, second = (body["first_step"] for _, kind, body in self.events(job_id) if kind == "plan")
        self.assertEqual(first, 0)
        self.assertGreaterEqual(second, 10)

    def test_one_thread_has_other_bits(self):
        self.serve("none")
        other = self.finish(self.submit(**JOB, threads=1)["id"])
        self.assertNotEqual(other, self.expected, "or the other tests show nothing")
