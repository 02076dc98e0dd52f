"""More work than can be done, and models that change under it: cases 20 and 21 of the list in the protocol notes."""
import json
import statistics
import threading
import time

import models
from raw_http import GOOD_BODY, Connection, HostileTest, request, slow_body
from tandem_server import PATIENCE, SANITIZED, until

QUEUE = 16


class Asker(threading.Thread):
    """Asks one thing after another on one connection until told to stop; keeps statuses and times."""
    def __init__(self, port, question, stop, pause=0.0):
        super().__init__(daemon=True)
        self.port, self.question, self.stop, self.pause = port, question, stop, pause
        self.answers, self.broken = [], None
        self.start()

    def run(self):
        try:
            with Connection(self.port) as connection:
                while not self.stop.is_set():
                    begun = time.monotonic()
                    answer = connection.send(self.question).answer()
                    if answer is None:
                        raise AssertionError("closed without an answer")
                    self.answers.append((answer, time.monotonic() - begun))
                    time.sleep(self.pause)
        except Exception as error:  # Reported by the test's own thread.
            self.broken = error


class LoadTest(HostileTest):
    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        models.place(repository, "slow", models.slow())

    def ask(self, question, askers, pause=0.0):
        """Starts askers, to be ended by finish()."""
        self.stop = threading.Event()
        self.addCleanup(self.stop.set)
        self.askers = [Asker(self.server.http_port, question, self.stop, pause) for _ in range(askers)]

    def steps_for(self, seconds):
        """How many steps of the slow model take about so long here and now."""
        begun = time.monotonic()
        self.assertEqual(self.send(slow_body(2000)).status, 200)
        return max(10, int(2000 * seconds / (time.monotonic() - begun)))

    def finish(self):
        """All answers, with their times; none may be missing."""
        self.stop.set()
        for asker in self.askers:
            asker.join(PATIENCE)
            if asker.broken:
                raise asker.broken
        return [pair for asker in self.askers for pair in asker.answers]


class Overload(LoadTest):
    flags = ("--max-queue", str(QUEUE))

    def test_overload_is_refused_at_once_and_passes(self):
        for askers in (2 * QUEUE, 10 * QUEUE):
            self.ask(slow_body(self.steps_for(0.03)), askers)
            depths = []
            end = time.monotonic() + 3
            while time.monotonic() < end:
                depths.append(self.server.metric("tandem_queue_depth"))
                self.assertEqual(self.server.call("GET", "/v2/health/live").status, 200)
                time.sleep(0.1)
            pairs = self.finish()
            done = [seconds for answer, seconds in pairs if answer.status == 200]
            refused = [(answer, seconds) for answer, seconds in pairs if answer.status != 200]
            self.assertTrue(done and refused, f"{len(done)} done, {len(refused)} refused by {askers} askers")
            self.assertLessEqual(max(depths), QUEUE)
            for answer, _ in refused:
                self.assertRefused(answer, "queue", status=503)
            self.assertLess(statistics.median(seconds for _, seconds in refused), statistics.median(done),
                            "refusals are slow")
            until(lambda: self.server.metric("tandem_queue_depth") == 0, "the queue is empty")
            self.assertWell()

    def test_requests_with_deadlines_are_met_or_refused(self):
        steps = self.steps_for(0.03)
        self.ask(slow_body(steps, slo_ms=200), QUEUE)
        time.sleep(3)
        for answer, _ in self.finish():
            if answer.status != 200:
                self.assertRefused(answer, "queue|deadline", status=503)


class Order(LoadTest):
    """One run at a time, so that answers come in the order of the runs."""
    flags = ("--workers", "1")

    def test_urgent_requests_go_first(self):
        steps = self.steps_for(0.2)
        first = self.connect().send(slow_body(20_000_000))  # Minutes: holds the device until it goes.
        self.server.wait_busy()
        waiting = {}
        for index, priority in enumerate((3, 2, 1)):
            waiting[priority] = self.connect().send(slow_body(steps, priority=priority))
            until(lambda: self.server.metric("tandem_queue_depth") == index + 1, "it is in the queue")
        first.close()
        order = []
        threads = [
            threading.Thread(target=lambda p=priority: order.append((waiting[p].answer().status, p)))
            for priority in waiting
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(order, [(200, 1), (200, 2), (200, 3)])


class Changes(LoadTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*", "--workers", "1")

    def change(self, call, name="bias", status=200):
        answer = self.server.call("POST", f"/v2/repository/models/{name}/{call}", b"")
        self.assertEqual(answer.status, status, answer)
        return answer

    def tearDown(self):
        models.place(self.repository, "bias", models.bias())
        self.change("load")
        super().tearDown()

    def test_reloads_lose_no_request(self):
        self.ask(request(GOOD_BODY), 4, pause=0.002)
        for value in range(2, 12 if SANITIZED else 40):
            models.place(self.repository, "bias", models.bias(value))
            self.change("load")
            answer = self.send(request(GOOD_BODY))
            self.assertEqual(answer.json()["outputs"][0]["data"], [1 + value, 2 + value, 3 + value, 4 + value],
                             "the new one is served")
        pairs = self.finish()
        self.assertGreater(len(pairs), 50)
        for answer, _ in pairs:
            self.assertEqual(answer.status, 200, answer)
            first, second, *_ = answer.json()["outputs"][0]["data"]
            self.assertEqual(second - first, 1)

    def test_reloads_to_a_broken_model_keep_the_old(self):
        self.ask(request(GOOD_BODY), 4, pause=0.002)
        path = self.repository / "bias/1/model.onnx"
        for content in (b"", b"nonsense", path.read_bytes()[:60]) * 5:
            path.write_bytes(content)
            self.change("load", status=400)
        for answer, _ in self.finish():
            self.assertEqual(answer.json()["outputs"][0]["data"], [2, 3, 4, 5])

    def test_a_new_version_takes_over(self):
        self.ask(request(GOOD_BODY), 4, pause=0.002)
        for version in (2, 3, 4):
            models.place(self.repository, "bias", models.bias(version * 10), version)
            self.change("load")
            answer = self.send(request(GOOD_BODY))
            self.assertEqual((answer.json()["model_version"], answer.json()["outputs"][0]["data"][0]),
                             (str(version), 1 + version * 10))
        for version in (4, 3, 2):
            folder = self.repository / "bias" / str(version)
            (folder / "model.onnx").unlink()
            folder.rmdir()
            self.change("load")
        for answer, _ in self.finish():
            self.assertEqual(answer.status, 200, answer)

    def test_unloads_let_requests_finish(self):
        for _ in range(5):
            first = self.connect().send(slow_body(20_000))
            waiting = self.connect().send(slow_body(10))
            until(lambda: self.server.metric("tandem_queue_depth") == 1, "the second waits for the first")
            self.change("unload", "slow")
            self.assertRefused(self.send(slow_body(10)), "slow", status={404, 503})
            self.assertEqual(first.answer().status, 200)
            self.assertEqual(waiting.answer().status, 200)
            self.change("load", "slow")

    def test_load_and_unload_all_the_time(self):
        self.ask(request(GOOD_BODY.replace(b"good", b"spare"), "/v2/models/spare/infer"), 4, pause=0.002)
        stop = threading.Event()
        failures = []

        def churn():
            while not stop.is_set():
                for call in ("load", "unload"):
                    answer = self.server.call("POST", f"/v2/repository/models/spare/{call}", b"")
                    if answer.status != 200:
                        failures.append(answer)

        threads = [threading.Thread(target=churn) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(failures, [])
        for answer, _ in self.finish():
            if answer.status == 200:
                self.assertEqual(json.loads(answer.body)["outputs"][0]["data"], [3, 4, 5, 6])
            else:
                self.assertRefused(answer, "spare", status={404, 503})
        self.change("load", "spare")
