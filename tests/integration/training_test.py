"""Training jobs through the real API, with real trainers: learn, publish, control, refuse."""
import http.client
import os
import pathlib
import threading
import time

import numpy as np

import models
from tandem_server import PATIENCE, SANITIZED, until
from training_jobs import TrainingTest, examples, job


class Training(TrainingTest):
    def test_a_served_model_learns_and_its_successor_is_served_without_a_failed_request(self):
        self.serve()
        before = self.accuracy()
        self.assertLess(before, 0.5)
        failures, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                answer = self.server.call("POST", "/v2/models/digits/infer", {
                    "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [0.0] * 64}]
                })
                if answer.status != 200:
                    failures.append(answer.body)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            submitted = self.submit(publish="if_better")
            self.assertEqual(submitted["state"], "queued")
            done = self.wait(submitted["id"], "succeeded")
            self.wait_published(done["id"])
        finally:
            stop.set()
            asking.join()
        self.assertEqual(failures, [])
        self.assertGreater(self.accuracy(), 0.9)
        self.assertEqual(self.server.call("GET", "/v2/models/digits").json()["versions"], ["2"])
        self.assertEqual(done["model_version"], "1")
        self.assertEqual(done["progress"]["step"], done["progress"]["total_steps"])
        self.assertGreater(done["progress"]["best"], 0.9)

    def wait_published(self, job_id):
        return until(lambda: self.show(job_id)["published_version"], "the job is published")

    def test_rolling_back_serves_the_version_before(self):
        self.serve()
        before = self.accuracy()
        submitted = self.submit(publish="on_success")
        self.wait(submitted["id"], "succeeded")
        self.assertEqual(self.wait_published(submitted["id"]), "2")
        self.call("POST", f"/jobs/{submitted['id']}/publish", status=409)
        self.assertEqual(self.call("POST", f"/jobs/{submitted['id']}/rollback")["published_version"], "")
        self.assertEqual(self.accuracy(), before)
        self.call("POST", f"/jobs/{submitted['id']}/rollback", status=409)
        self.assertEqual(self.call("POST", f"/jobs/{submitted['id']}/publish")["published_version"], "2")
        self.assertGreater(self.accuracy(), 0.9)

    def test_tells_how_it_goes(self):
        self.serve()
        submitted = self.submit(checkpoint={"every_steps": 10, "every_seconds": 0, "keep": 2})
        done = self.wait(submitted["id"], "succeeded")
        series = self.call("GET", f"/jobs/{done['id']}/metrics")
        self.assertGreaterEqual(set(series), {"loss", "lr", "accuracy", "eval_loss"})
        self.assertEqual(series["loss"]["steps"][-1], done["progress"]["total_steps"])
        self.assertGreater(series["accuracy"]["values"][-1], series["accuracy"]["values"][0])
        checkpoints = self.call("GET", f"/jobs/{done['id']}/checkpoints")["checkpoints"]
        self.assertEqual(len(checkpoints), 2)
        self.assertTrue(all(one["good"] and one["bytes"] > 0 for one in checkpoints))
        events = self.events(done["id"])
        self.assertEqual([number for number, _, _ in events], sorted({number for number, _, _ in events}))
        kinds = [kind for _, kind, _ in events]
        for kind in ("state", "plan", "evaluation", "checkpoint"):
            self.assertIn(kind, kinds)
        states = [body["to"] for _, kind, body in events if kind == "state"]
        self.assertEqual(states, ["queued", "admitted", "running", "succeeded"])
        log = self.log(done["id"])
        self.assertIn("begins at step 0 of 75", log)
        self.assertIn("on 800 examples; evaluated on 200 others", log)
        for step, kind, count in (("0", "evaluation", 4), ("70", "checkpoint", 7)):
            self.assertIn(f"{kind} at step {step}: ", log)
            self.assertEqual(log.count(f"{kind} at step"), count)
        self.assertRegex(log.splitlines()[-1], r"^\d+-\d+-\d+T\d+:\d+:\d+Z finished at step 75$")
        # A client that lost its connection goes on behind the last event that it saw.
        later = self.server.call("GET", f"/v2/train/jobs/{done['id']}/events", headers={"Last-Event-ID": str(events[-2][0])})
        self.assertEqual(later.body.decode().count("event: "), 1)

    def test_waits_and_goes_on_when_told(self):
        self.serve()
        submitted = self.submit(epochs=None, steps=10_000_000, evaluation=None)
        self.wait(submitted["id"], "running")
        self.wait_step(submitted["id"], 10)
        self.assertEqual(self.call("POST", f"/jobs/{submitted['id']}/pause")["state"], "paused")
        self.call("POST", f"/jobs/{submitted['id']}/pause", status=409)
        (trainer, ) = self.server.trainers()

        def used():
            fields = pathlib.Path(f"/proc/{trainer}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        def still():
            before = used()
            time.sleep(0.3)
            return used() == before

        until(still, "the trainer waits")
        self.assertEqual(self.call("POST", f"/jobs/{submitted['id']}/resume")["state"], "running")
        step = self.show(submitted["id"])["progress"]["step"]
        self.wait_step(submitted["id"], step + 10)
        self.call("DELETE", f"/jobs/{submitted['id']}", status=409)
        self.assertEqual(self.call("POST", f"/jobs/{submitted['id']}/cancel")["state"], "cancelled")
        self.assertEqual(self.server.trainers(), [])
        self.call("POST", f"/jobs/{submitted['id']}/resume", status=409)
        self.call("DELETE", f"/jobs/{submitted['id']}")
        self.call("GET", f"/jobs/{submitted['id']}", status=404)
        self.assertFalse((self.state / "jobs" / str(submitted["id"])).exists())

    def test_trainers_are_behind_everybody_else(self):
        self.server = self.start(self.repository, "--state", self.state)
        self.submit(epochs=None, steps=10_000_000, evaluation=None, data={"kind": "synthetic", "samples": 100, "classes": 10})
        (trainer, ) = until(self.server.trainers, "a trainer runs")

        def idle():
            threads = os.listdir(f"/proc/{trainer}/task")
            return len(threads) > 1 and all(os.sched_getscheduler(int(one)) == os.SCHED_IDLE for one in threads)

        until(idle, "all its threads are of the idle class")
        self.assertEqual(os.getpgid(trainer), trainer)
        status = pathlib.Path(f"/proc/{trainer}/status").read_text()
        self.assertIn("NoNewPrivs:\t1", status)
        environment = pathlib.Path(f"/proc/{trainer}/environ").read_bytes().split(b"\0")
        self.assertFalse([one for one in environment if one.startswith((b"HOME=", b"TANDEM_", b"XDG_"))])

    def test_the_same_key_is_the_same_job(self):
        self.serve()
        first = self.submit(key="once", steps=1, epochs=None)
        self.assertEqual(self.submit(key="once", steps=1, epochs=None, status=200)["id"], first["id"])
        self.assertIn("once", str(self.submit(key="once", steps=2, epochs=None, status=409)))
        self.assertNotEqual(self.submit(steps=1, epochs=None)["id"], first["id"])

    def test_lists_pages_and_states(self):
        self.serve()
        ids = [self.submit(steps=1, epochs=None, evaluation=None)["id"] for _ in range(5)]
        for job_id in ids:
            self.wait(job_id, "succeeded")
        page = self.call("GET", "/jobs?limit=2")
        self.assertEqual([one["id"] for one in page["jobs"]], ids[:-3:-1])
        page = self.call("GET", f"/jobs?limit=10&before={page['next']}")
        self.assertEqual([one["id"] for one in page["jobs"]], ids[2::-1])
        self.assertIsNone(page["next"])
        self.assertEqual(self.call("GET", "/jobs?state=running,failed")["jobs"], [])
        for query in ("limit=0", "limit=x", "state=happy", "color=red", "before=-1", "limit=1&limit=2"):
            self.assertIn(query.split("=")[0], str(self.call("GET", f"/jobs?{query}", status=400)))


class TrainedModel(TrainingTest):
    """The call that gives the trained model."""
    def finished(self):
        submitted = self.submit(steps=3, epochs=None, evaluation=None)
        self.wait(submitted["id"], "succeeded")
        return submitted["id"], self.state / "jobs" / str(submitted["id"]) / "model.onnx"

    def test_is_the_file_that_would_be_published(self):
        self.serve()
        job_id, _ = self.finished()
        answer = self.server.call("GET", f"/v2/train/jobs/{job_id}/model")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
        self.assertEqual(answer.headers["Content-Disposition"], f'attachment; filename="job-{job_id}.onnx"')
        self.assertEqual(answer.body, self.result_file(job_id).read_bytes())
        self.call("POST", f"/jobs/{job_id}/publish")
        self.assertEqual((self.repository / "digits/2/model.onnx").read_bytes(), answer.body)
        head = self.server.call("HEAD", f"/v2/train/jobs/{job_id}/model")
        self.assertEqual((head.status, head.body), (200, b""))

    def test_is_not_there_before_the_job_has_succeeded(self):
        self.serve()
        submitted = self.submit(epochs=None, steps=10_000_000, evaluation=None)
        self.wait_step(submitted["id"], 1)
        self.assertIn("running", self.call("GET", f"/jobs/{submitted['id']}/model", status=409)["error"])
        self.call("POST", f"/jobs/{submitted['id']}/cancel")
        self.assertIn("cancelled", self.call("GET", f"/jobs/{submitted['id']}/model", status=409)["error"])
        self.call("GET", "/jobs/99/model", status=404)
        self.assertIn("form", self.call("GET", f"/jobs/{submitted['id']}/model?form=onnx", status=400)["error"])

    def ask(self, job_id):
        """The answer, none of which is read yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", f"/v2/train/jobs/{job_id}/model")
        return connection.getresponse()

    def test_is_read_from_the_disk_only_as_fast_as_the_client_takes_it(self):
        self.serve()
        job_id, file = self.finished()
        content = np.random.default_rng(1).bytes(64 << 20)
        file.write_bytes(content)
        before = self.server.resident_bytes()
        waiting = [self.ask(job_id) for _ in range(4)]
        first = [answer.read(1 << 20) for answer in waiting]
        self.server.wait_idle()
        if not SANITIZED:
            self.assertLess(self.server.resident_bytes() - before, 32 << 20)
        self.assertEqual(first, [content[:1 << 20]] * 4)
        self.assertEqual(self.server.call("GET", "/v2/health/ready").status, 200)
        self.assertTrue(waiting[0].read() == content[1 << 20:])

    def test_that_ends_too_early_is_no_whole_answer(self):
        self.serve()
        job_id, file = self.finished()
        file.write_bytes(bytes(40 << 20))
        answer = self.ask(job_id)
        answer.read(1 << 20)
        os.truncate(file, 1 << 20)
        with self.assertRaises(http.client.HTTPException):
            answer.read()
        file.unlink()
        self.assertIn("cannot be opened", self.call("GET", f"/jobs/{job_id}/model", status=500)["error"])


class BadJobs(TrainingTest):
    def test_all_problems_are_told_at_once(self):
        self.serve()
        answer = self.submit(status=400, batch_size=0, optimizer={"kind": "adamw", "lr": -1}, colour="red", epochs="three")
        self.assertEqual({problem["pointer"] for problem in answer["problems"]},
                         {"/batch_size", "/optimizer/lr", "/colour", "/epochs"})
        self.assertEqual(self.call("GET", "/jobs")["jobs"], [])

    def test_what_is_not_there_or_not_allowed_is_refused(self):
        outside = self.folder / "outside.npz"
        np.savez(outside, x=np.zeros(1), y=np.zeros(1))
        (self.data / "link.npz").symlink_to(outside)
        models.place(self.repository, "loop", models.slow())
        self.serve()
        for status, part, fields in [
            (404, "nobody", {"model": "nobody"}),
            (404, "9", {"model": {"name": "digits", "version": "9"}}),
            (400, "gone.npz", {"data": {"path": "gone.npz"}}),
            (400, "outside the data root", {"data": {"path": "link.npz"}}),
            (400, "/data/path", {"data": {"path": "../outside.npz"}}),
            (501, "Loop (node", {"model": "loop"}),
        ]:
            with self.subTest(part):
                self.assertIn(part, self.submit(status=status, **fields)["error"])
        for path in ("/jobs/1", "/jobs/x", "/jobs/99999999999999999999", "/jobs/1/logs", "/jobs/1/events"):
            self.call("GET", path, status=404)

    def failed(self, **fields):
        submitted = self.submit(**fields)
        return self.wait(submitted["id"], "failed")["reason"]

    def test_a_job_that_cannot_work_fails_with_the_reason(self):
        x, y = examples(100, seed=3)
        y[42] = 10
        np.savez(self.data / "labels.npz", x=x, y=y)
        x[17, 5] = np.nan
        np.savez(self.data / "nan.npz", x=x, y=np.zeros(100, np.int64))
        np.savez(self.data / "shape.npz", x=x[:, :63], y=np.zeros(100, np.int64))
        self.serve()
        reason = self.failed(data={"path": "labels.npz"})
        self.assertIn("42", reason)
        self.assertIn("10", reason)
        self.assertIn("63", self.failed(data={"path": "shape.npz"}))
        self.assertIn("'nan.npz:x', row 17: element 5 is nan", self.failed(data={"path": "nan.npz"}))
        self.assertIn("w9", self.failed(trainable=["w9*"]))
        reason = self.failed(optimizer={"kind": "sgd", "lr": 1000}, evaluation=None)
        self.assertIn("learning rate", reason)
        self.assertEqual(self.server.call("GET", "/v2/health/ready").status, 200)

    def test_without_training_its_calls_say_so(self):
        self.server = self.start(self.repository, "--allow-training", "false")
        for method, path in (("POST", "/jobs"), ("GET", "/jobs"), ("GET", "/jobs/1")):
            answer = self.server.call(method, "/v2/train" + path, job() if method == "POST" else None)
            self.assertEqual(answer.status, 503)
            self.assertIn("--allow-training", answer.json()["error"])

    def test_a_second_server_does_not_share_the_state(self):
        self.serve()
        second = self.start(self.repository, "--state", self.state, "--data-root", self.data, wait=False)
        self.assertEqual(second.wait(), 1)
        self.assertIn(str(self.server.pid), second.log())
