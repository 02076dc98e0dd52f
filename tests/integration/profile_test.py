"""What the operators of a training job take: over REST, on the command line, while it runs and afterwards."""
import json
import subprocess
import threading
import time
import xml.dom.minidom

import models
from tandem_server import BINARY, until
from training_jobs import TrainingTest

LONG = {"epochs": None, "steps": 100_000_000, "evaluation": None}


class Profile(TrainingTest):
    def setUp(self):
        super().setUp()
        self.serve()

    def serve(self):
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation", "none")

    def profile(self, job_id):
        answer = self.server.call("GET", f"/v2/train/jobs/{job_id}/profile")
        return answer.json() if answer.status == 200 else None

    def cli(self, *arguments):
        return subprocess.run([BINARY, "profile", *arguments, "--url", f"http://127.0.0.1:{self.server.http_port}"],
                              capture_output=True,
                              text=True)

    def test_a_job_that_runs_tells_of_every_operator(self):
        job_id = self.submit(**LONG)["id"]
        self.wait_step(job_id, 20)
        until(lambda: (self.profile(job_id) or {"ops": []})["ops"], "it was looked at its operators")
        first = self.profile(job_id)
        self.assertTrue(first["live"])
        kinds = {op["kind"] for op in first["ops"]}
        for kind in list(kinds):
            if kind.endswith(" gradient"):
                self.assertIn(kind.removesuffix(" gradient"), kinds)
        self.assertLessEqual({"loss", "loss gradient", "gradients kept", "update"}, kinds)
        self.assertAlmostEqual(sum(op["share"] for op in first["ops"]), 1, places=6)
        self.assertAlmostEqual(sum(op["total_ms"] for op in first["ops"]), first["total_ms"], places=3)
        times = [op["total_ms"] for op in first["ops"]]
        self.assertEqual(times, sorted(times, reverse=True))
        for op in first["ops"]:
            self.assertIn(op["class"], ("light", "heavy"))
            self.assertIn("takes", op["why"])
            self.assertEqual(op["interference"], [], "there were no requests")
        until(lambda: self.profile(job_id)["total_ms"] > first["total_ms"], "it goes on")

    def test_an_operator_has_a_class_beside_each_model(self):
        self.server.stop()
        models.place(self.repository, "digits", models.mlp(hidden=32768))  # Whose operators take milliseconds anywhere.
        for name in ("one", "other"):
            models.place(self.repository, name, models.mlp(hidden=2048))
        self.serve()
        job_id = self.submit(**LONG, batch_size=256)["id"]
        ended = threading.Event()

        def told(job):
            ops = (self.profile(job) or {"ops": []})["ops"]
            return next((op for op in ops if {one["model"] for one in op["interference"]} == {"one", "other"}), None)

        def ask(model):
            body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [16, 64], "data": [0.5] * 1024}]}
            while not ended.is_set():
                self.server.call("POST", f"/v2/models/{model}/infer", body)
                time.sleep(0.01)

        asking = [threading.Thread(target=ask, args=(name, )) for name in ("one", "other")]
        for thread in asking:
            thread.start()
        try:
            op = until(lambda: told(job_id), "runs of both models were beside an operator")
            beside = self.server.call("POST", "/v2/models/one/profile", {"runs": 1}).json()["training"]
            table = self.cli(str(job_id)).stdout
        finally:
            ended.set()
            for thread in asking:
                thread.join()
        for pairing in op["interference"]:
            self.assertIn(pairing["class"], ("light", "heavy"))
            self.assertGreater(pairing["ratio"], 0)
            self.assertGreaterEqual(pairing["runs"], 15)
        self.assertEqual((op["class"], op["why"]), (op["interference"][0]["class"], op["interference"][0]["why"]))
        self.assertIn(job_id, [one["job"] for one in beside])
        self.assertIn(" × one ", table)
        self.assertIn(" × other ", table)

    def test_the_profile_of_a_job_that_has_ended_stays(self):
        job_id = self.submit(epochs=None, steps=30, evaluation=None)["id"]
        self.wait(job_id, "succeeded")
        kept = self.profile(job_id)
        self.assertFalse(kept["live"])
        (update, ) = [op for op in kept["ops"] if op["kind"] == "update"]
        self.assertEqual(update["count"] % 30, 0, "each step has as many")
        self.server.stop()
        self.serve()
        self.assertEqual(self.profile(job_id), kept)

    def test_a_profile_as_a_table_as_json_and_as_a_flame_graph(self):
        job_id = self.submit(epochs=None, steps=30, evaluation=None)["id"]
        self.wait(job_id, "succeeded")
        picture = self.folder / "flame.svg"
        table = self.cli(str(job_id), "--top", "2", "--flame", str(picture))
        self.assertEqual(table.returncode, 0, table.stderr)
        lines = table.stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["operator", "node", "count"])
        self.assertIn("more", lines[3])
        self.assertIn("in all, of the last trainer", lines[4])
        drawn = xml.dom.minidom.parse(str(picture))
        titles = [title.firstChild.data for title in drawn.getElementsByTagName("title")]
        self.assertTrue(any(title.startswith("gradients: ") for title in titles), titles)
        as_json = self.cli(str(job_id), "--json")
        self.assertEqual(json.loads(as_json.stdout), self.profile(job_id))

    def test_mistakes_are_told(self):
        missing = self.cli("77")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("77", missing.stderr)
        self.assertEqual(self.cli("none", "--job").returncode, 2)
        self.assertEqual(self.cli("7", "--runs", "3").returncode, 2)
        job_id = self.submit(epochs=None, steps=2, evaluation=None)["id"]
        self.wait(job_id, "succeeded")
        nowhere = self.cli(str(job_id), "--flame", str(self.folder / "no" / "such" / "file.svg"))
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn("--flame", nowhere.stderr)

    def test_a_damaged_profile_is_an_error_and_nothing_more(self):
        job_id = self.submit(epochs=None, steps=2, evaluation=None)["id"]
        self.wait(job_id, "succeeded")
        (kept, ) = self.state.rglob("profile.json")
        kept.write_bytes(b'{"ops": [')
        answer = self.server.call("GET", f"/v2/train/jobs/{job_id}/profile")
        self.assertEqual(answer.status, 500, answer.body)
        self.assertIn("profile", answer.json()["error"])
        self.assertEqual(self.show(job_id)["state"], "succeeded")

