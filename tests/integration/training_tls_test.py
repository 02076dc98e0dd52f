"""What grows while a job runs, over TLS and with tokens: events, logs and the trained model."""
import http.client
import json
import subprocess
import threading

from certificates import Certificates
from tandem_server import BINARY, PATIENCE, tandem
from training_jobs import TrainingTest, job

TOKEN = "open-sesame"
LONG = {"epochs": None, "steps": 10_000_000, "evaluation": None}


class TrainingOverTls(TrainingTest):
    def setUp(self):
        super().setUp()
        keys = self.folder / "keys"
        keys.mkdir()
        self.certificates = Certificates(keys)
        (keys / "tokens").write_text(TOKEN + "\n")
        self.serve("--tls-cert", self.certificates["server.pem"], "--tls-key", self.certificates["server.key"],
                   "--token-file", keys / "tokens", tls=True)
        self.url = f"https://{self.server.http}"
        self.flags = ("--url", self.url, "--tls-ca", self.certificates["ca.pem"], "--token", TOKEN)

    def ask(self, method, path, body=None, token=TOKEN):
        """The answer, of which the head has come."""
        connection = http.client.HTTPSConnection("localhost",
                                                 self.server.http_port,
                                                 context=self.certificates.context(),
                                                 timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request(method, "/v2/train" + path, json.dumps(body) if body else None,
                           {"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse()

    def call(self, method, path, body=None, status=200, **_):
        answer = self.ask(method, path, body)
        text = answer.read()
        self.assertEqual(answer.status, status, text)
        return json.loads(text)

    def log(self, job_id):
        return self.ask("GET", f"/jobs/{job_id}/logs").read().decode()

    def test_events_come_while_the_job_runs_and_end_with_it(self):
        job_id = self.submit(**LONG)["id"]
        events = self.ask("GET", f"/jobs/{job_id}/events")
        self.assertEqual(events.headers["Content-Type"], "text/event-stream")
        seen = []
        while not seen or b'"to":"running"' not in seen[-1]:
            seen.append(events.readline())
            self.assertTrue(seen[-1], "the stream has ended")
        self.assertEqual(self.show(job_id)["state"], "running")
        last = [line for line in seen if line.startswith(b"id: ")][-1].split()[1].decode()
        # Another takes up where this one is.
        other = self.ask("GET", f"/jobs/{job_id}/events?after={last}")
        self.call("POST", f"/jobs/{job_id}/cancel")
        rest = events.read()
        self.assertIn(b'"to":"cancelled"', rest)
        again = other.read()
        self.assertIn(b'"to":"cancelled"', again)
        self.assertNotIn(b'"to":"running"', again)

    def test_a_log_is_followed_to_its_end(self):
        job_id = self.submit(**LONG)["id"]
        self.wait_step(job_id, 1)
        answer = self.ask("GET", f"/jobs/{job_id}/logs?follow=true")
        # Lines whose time is known.
        with open(self.state / "jobs" / str(job_id) / "trainer.log", "ab") as log:
            log.write(b"one line\n")
        begin = answer.readline()
        while b"one line" not in begin:
            begin += answer.readline()
        self.assertEqual(self.show(job_id)["state"], "running")
        with open(self.state / "jobs" / str(job_id) / "trainer.log", "ab") as log:
            log.write(b"and another " * 50_000)
        self.call("POST", f"/jobs/{job_id}/cancel")
        whole = begin + answer.read()
        self.assertTrue(whole.endswith(b"and another " * 50_000))
        self.assertEqual(whole.decode(), self.log(job_id))

    def test_the_commands_follow_and_fetch(self):
        follower = subprocess.Popen([str(BINARY), "train", "events", "--follow", *map(str, self.flags)],
                                    stdout=subprocess.PIPE,
                                    text=True)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(lambda: (follower.kill(), follower.wait()))
        file = self.folder / "job.json"
        file.write_text(json.dumps(job()))
        done = tandem("train", "submit", file, "--watch", *self.flags, timeout=4 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"job 1 succeeded")
        line = ""
        while "running → succeeded" not in line:
            line = follower.stdout.readline()
            self.assertTrue(line, "the stream has ended")
        with open(self.state / "jobs/1/trainer.log", "ab") as log:
            log.write(b"the end\n")
        for words, last in ((["events", 1], "running → succeeded"), (["logs", 1], "the end\n")):
            done = tandem("train", *words, "--follow", *self.flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(last, done.stdout)
        result = self.folder / "result.onnx"
        done = tandem("train", "fetch", 1, "-o", result, *self.flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(result.read_bytes(), self.result_file(1).read_bytes())

    def test_a_large_model_comes_whole_while_another_client_waits(self):
        job_id = self.submit(steps=1, epochs=None, evaluation=None)["id"]
        self.wait(job_id, "succeeded")
        content = bytes(range(256)) * (1 << 17)
        (self.state / "jobs" / str(job_id) / "model.onnx").write_bytes(content)
        slow = self.ask("GET", f"/jobs/{job_id}/model")
        first = slow.read(1000)
        got = []
        readers = [
            threading.Thread(target=lambda: got.append(self.ask("GET", f"/jobs/{job_id}/model").read() == content))
            for _ in range(3)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(got, [True] * 3)
        self.assertTrue(first + slow.read() == content)

    def test_nothing_is_told_without_a_token(self):
        job_id = self.submit(**LONG)["id"]
        for token in (None, "wrong"):
            for path in ("", "/events", "/logs?follow=true", "/model", "/metrics", "/checkpoints"):
                answer = self.ask("GET", f"/jobs/{job_id}{path}", token=token)
                self.assertEqual((answer.status, json.loads(answer.read())), (401, {"error": "a valid bearer token is needed"}))
            self.assertEqual(self.ask("GET", "/events", token=token).status, 401)
            self.assertEqual(self.ask("POST", "/jobs", job(), token=token).status, 401)
            self.assertEqual(self.ask("POST", f"/jobs/{job_id}/cancel", token=token).status, 401)
        self.assertEqual(len(self.call("GET", "/jobs")["jobs"]), 1)
        self.call("POST", f"/jobs/{job_id}/cancel")
