"""What becomes of trained models: which are served, in whose place, where they came from, what metrics tell of it."""
import os
import signal
import sqlite3
import threading

import numpy as np
import tritonclient.grpc
import tritonclient.http
from prometheus_client.parser import text_string_to_metric_families

import models
from tandem_server import tandem, until
from training_jobs import TrainingTest, examples

SHORT = {"epochs": None, "steps": 3, "evaluation": None}
LONG = {"epochs": None, "steps": 10_000_000, "evaluation": None}


class PublishTest(TrainingTest):
    def wait_published(self, job_id):
        self.wait(job_id, "succeeded")
        return until(lambda: self.show(job_id)["published_version"], f"job {job_id} is published")

    def serve_after(self, change):
        """A server that finds the jobs as another left them, and changed by this SQL."""
        self.assertEqual(self.server.stop(), 0)
        with sqlite3.connect(self.state / "jobs.db") as database:
            database.execute(change)
        database.close()
        self.serve()

    def wait_event(self, job_id, kind):
        self.wait(job_id, "succeeded")
        return until(lambda: next((body for _, one, body in self.events(job_id) if one == kind), None), kind)

    def versions(self, model):
        return self.server.call("GET", f"/v2/models/{model}").json()["versions"]

    def check_served_file(self, version, job_id):
        served = self.repository / "digits" / version / "model.onnx"
        self.assertEqual(served.read_bytes(), self.result_file(job_id).read_bytes())

    def asking(self):
        """Asks `digits` without a pause until the test leaves the block; then none of the answers was an error."""
        test = self

        class Asking:
            def __enter__(self):
                self.failures, self.answers, self.stop = [], 0, threading.Event()
                self.thread = threading.Thread(target=self.run)
                self.thread.start()
                return self

            def run(self):
                while not self.stop.is_set():
                    answer = test.server.call("POST", "/v2/models/digits/infer", {
                        "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [0.0] * 64}]
                    })
                    self.answers += 1
                    if answer.status != 200:
                        self.failures.append(answer.body)

            def __exit__(self, kind, *_):
                self.stop.set()
                self.thread.join()
                if kind is None:
                    test.assertEqual(self.failures, [])
                    test.assertGreater(self.answers, 0)

        return Asking()


class Publishing(PublishTest):
    def check_only_one_model_is_loaded(self, *flags):
        models.place(self.repository, "other", models.bias(1))
        self.serve(*flags)
        # None of this is the job's business.
        models.place(self.repository, "other", models.bias(2), version=2)
        models.place(self.repository, "late", models.bias(3))
        with self.asking():
            job_id = self.submit(publish="on_success", **SHORT)["id"]
            self.assertEqual(self.wait_published(job_id), "2")
            self.assertEqual(self.versions("digits"), ["2"])
            self.assertEqual(self.versions("other"), ["1"])
            self.call("POST", f"/jobs/{job_id}/rollback")
            self.assertEqual(self.versions("digits"), ["1"])
        self.assertEqual(self.versions("other"), ["1"])
        self.assertNotEqual(self.server.call("GET", "/v2/models/late/ready").status, 200)

    def test_loads_only_its_model(self):
        self.check_only_one_model_is_loaded()

    def test_loads_only_its_model_where_the_repository_is_polled(self):
        self.check_only_one_model_is_loaded("--model-control-mode", "poll", "--repository-poll-secs", "3600")

    def test_loads_only_its_model_where_models_are_loaded_by_calls(self):
        self.check_only_one_model_is_loaded("--model-control-mode", "explicit", "--load-model", "digits", "--load-model",
                                            "other")
        # One that nobody wants served is not brought back by a job.
        job_id = self.submit(**SHORT)["id"]
        self.wait(job_id, "succeeded")
        self.assertEqual(self.server.call("POST", "/v2/repository/models/digits/unload").status, 200)
        self.assertIn("not loaded", self.call("POST", f"/jobs/{job_id}/publish", status=409)["error"])
        self.assertFalse((self.repository / "digits" / "2").exists())
        self.assertEqual(self.server.call("GET", "/v2/models/digits/ready").status, 503)

    def test_two_jobs_that_publish_at_once_get_a_version_each(self):
        self.serve("--max-training-jobs", "2")
        with self.asking():
            ids = [self.submit(publish="on_success", seed=seed, **SHORT)["id"] for seed in (1, 2)]
            published = {job_id: self.wait_published(job_id) for job_id in ids}
        self.assertEqual(sorted(published.values()), ["2", "3"])
        self.assertEqual(self.versions("digits"), ["3"])
        for job_id, version in published.items():
            self.check_served_file(version, job_id)
        self.assertEqual(sorted(path.name for path in (self.repository / "digits").iterdir()), ["1", "2", "3"])

    def test_a_job_is_published_once_however_often_it_is_asked_for(self):
        self.serve()
        job_id = self.submit(**SHORT)["id"]
        self.wait(job_id, "succeeded")
        statuses = []

        def publish():
            statuses.append(self.server.call("POST", f"/v2/train/jobs/{job_id}/publish").status)

        asking = [threading.Thread(target=publish) for _ in range(4)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        self.assertEqual(sorted(statuses), [200, 409, 409, 409])
        self.assertEqual(sorted(path.name for path in (self.repository / "digits").iterdir()), ["1", "2"])

    def test_a_version_stays_when_the_one_before_cannot_be_served(self):
        self.serve()
        job_id = self.submit(publish="on_success", **SHORT)["id"]
        self.wait_published(job_id)
        (self.repository / "digits" / "1" / "model.onnx").write_bytes(b"no model")
        with self.asking():
            error = self.call("POST", f"/jobs/{job_id}/rollback", status=409)["error"]
        self.assertIn("version 2 of 'digits' stays", error)
        self.assertEqual(self.versions("digits"), ["2"])
        self.check_served_file("2", job_id)
        self.assertEqual(self.show(job_id)["published_version"], "2")

    def test_better_means_better_than_what_is_served_by_then(self):
        self.serve()
        good = self.submit(publish="if_better")["id"]
        # From version 1 as well, but its turn comes when version 2 is served.
        poor = self.submit(publish="if_better", epochs=1, optimizer={"kind": "adamw", "lr": 0.0005})["id"]
        self.assertEqual(self.show(poor)["model_version"], "1")
        self.assertEqual(self.wait_published(good), "2")
        why = self.wait_event(poor, "not_published")["why"]
        first = next(body["accuracy"] for _, kind, body in self.events(poor) if kind == "evaluation")
        record = self.show(poor)
        self.assertGreater(record["progress"]["best"], first, "it is better than what it began from")
        self.assertIn(f"{record['progress']['best']:.6g}", why)
        self.assertIn(f"{self.show(good)['progress']['best']:.6g}", why)
        self.assertEqual(record["published_version"], "")
        self.assertEqual(self.versions("digits"), ["2"])
        # It is no law: a person may publish it all the same.
        self.assertEqual(self.call("POST", f"/jobs/{poor}/publish")["published_version"], "3")

    def test_a_new_head_may_change_the_classes_and_nothing_else_may(self):
        x, y = examples(200, seed=4)
        np.savez(self.data / "seven.npz", x=x, y=y % 7)
        self.serve()
        plain = self.submit(**SHORT)["id"]
        headed = self.submit(data={"path": "seven.npz"}, replace_head={"classes": 7}, publish="on_success", **SHORT)["id"]
        self.assertEqual(self.wait_published(headed), "2")
        note = self.wait_event(headed, "published")["note"]
        self.assertIn("'y'", note)
        self.assertIn("[-1,7]", note)
        self.assertIn("[-1,10]", note)
        self.assertEqual(self.server.call("GET", "/v2/models/digits").json()["outputs"][0]["shape"], [-1, 7])
        # The other was trained for what is no longer served.
        self.wait(plain, "succeeded")
        error = self.call("POST", f"/jobs/{plain}/publish", status=409)["error"]
        self.assertIn("output 'y' of the trained model is FP32 [-1,10]; that of the served one is FP32 [-1,7]", error)
        self.assertEqual(self.wait_event(plain, "publish_failed")["why"], error)
        self.assertEqual(self.versions("digits"), ["2"])

    def test_the_origin_of_a_version_is_shown_to_old_clients_too(self):
        self.serve()
        job_id = self.submit(publish="on_success", name="night shift", **SHORT)["id"]
        self.wait_published(job_id)
        with tritonclient.http.InferenceServerClient(self.server.http) as client:
            (entry, ) = client.get_model_repository_index()
            self.assertEqual((entry["name"], entry["version"], entry["state"]), ("digits", "2", "READY"))
            self.assertEqual(entry["parameters"]["tandem.job"], str(job_id))
            config = client.get_model_config("digits")
            self.assertEqual(config["parameters"]["tandem.job"], {"string_value": str(job_id)})
            self.assertEqual(config["parameters"]["tandem.job_name"], {"string_value": "night shift"})
            self.assertEqual(config["parameters"]["tandem.steps"], {"string_value": "3"})
        with tritonclient.grpc.InferenceServerClient(self.server.grpc) as client:
            self.assertEqual([one.version for one in client.get_model_repository_index().models], ["2"])
            parameters = client.get_model_config("digits").config.parameters
            self.assertEqual(parameters["tandem.job"].string_value, str(job_id))
        listed = tandem("models", "list", "--url", f"http://{self.server.http}").stdout
        self.assertRegex(listed, rf"digits +2 +READY +job {job_id}\b")
        self.call("POST", f"/jobs/{job_id}/rollback")
        listed = tandem("models", "list", "--url", f"http://{self.server.http}").stdout
        self.assertRegex(listed, r"digits +1 +READY +-")

    def test_what_a_server_left_unpublished_is_published_by_the_next(self):
        self.serve()
        job_id = self.submit(**SHORT)["id"]
        self.wait(job_id, "succeeded")
        # As a server leaves it that is killed between the end of a job and its publishing.
        self.serve_after("UPDATE jobs SET publish_due = 1")
        self.assertEqual(self.wait_published(job_id), "2")
        # And one that is killed after the version was written, before it was noted.
        self.serve_after("UPDATE jobs SET publish_due = 1, published_version = ''")
        self.assertEqual(self.wait_published(job_id), "2")
        self.assertEqual(self.versions("digits"), ["2"])

    def test_what_was_better_is_so_after_a_crash(self):
        self.serve()
        job_id = self.submit(publish="if_better")["id"]
        self.assertEqual(self.wait_published(job_id), "2")
        # As a server leaves it that is killed after the version was written, before it was noted.
        self.serve_after("UPDATE jobs SET publish_due = 1, published_version = ''")
        self.assertEqual(self.wait_published(job_id), "2")
        self.call("POST", f"/jobs/{job_id}/rollback")
        self.assertEqual(self.versions("digits"), ["1"])

    def test_a_new_head_is_compared_with_what_it_began_as_also_after_a_restart(self):
        self.serve()
        self.assertEqual(self.wait_published(self.submit(publish="if_better")["id"]), "2")
        old_head = self.accuracy()
        # A new head begins with guesses. It gets far better, and by far not as good as the old one is.
        headed = self.submit(publish="if_better", replace_head={"classes": 10}, epochs=None, steps=10,
                             trainable=["*"], optimizer={"kind": "adamw", "lr": 0.0005})["id"]
        self.assertEqual(self.wait_published(headed), "3")
        self.assertLess(self.show(headed)["progress"]["best"], old_head - 0.1)
        self.call("POST", f"/jobs/{headed}/rollback")
        # As a server leaves it that is killed between the end of the job and its publishing.
        self.serve_after(f"UPDATE jobs SET publish_due = 1 WHERE id = {headed}")
        until(lambda: self.kinds(headed).count("published") == 2 or "not_published" in self.kinds(headed), "it is decided")
        self.assertEqual(self.show(headed)["published_version"], "3", self.events(headed)[-1])

    def test_a_version_that_holds_something_else_by_now_is_not_rolled_back(self):
        self.serve()
        job_id = self.submit(**SHORT, publish="on_success")["id"]
        self.assertEqual(self.wait_published(job_id), "2")
        models.place(self.repository, "digits", models.mlp(), version="2")
        self.call("POST", f"/jobs/{job_id}/rollback")
        self.assertTrue((self.repository / "digits" / "2" / "model.onnx").exists())
        self.assertEqual(self.show(job_id)["published_version"], "")


class Owners(PublishTest):
    def test_a_job_belongs_to_the_token_that_submitted_it(self):
        tokens = self.folder / "tokens"
        tokens.write_text("# who may come in\nann secret-1\nbob secret-2\nsecret-3\n")
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "none", "--token-file", tokens)
        bearer = {"ann": "Bearer secret-1", "bob": "Bearer secret-2", "default": "Bearer secret-3"}
        body = {"model": "digits", "data": "train.npz", "steps": 1}
        ids = {}
        for owner, token in bearer.items():
            made = self.call("POST", "/jobs", body, 201, Authorization=token, Idempotency_Key="same")
            self.assertEqual(made["owner"], owner)
            ids[owner] = made["id"]
        self.assertEqual(len(set(ids.values())), 3, "a key is its owner's own")
        page = self.call("GET", "/jobs?owner=ann", Authorization=bearer["bob"])
        self.assertEqual([one["id"] for one in page["jobs"]], [ids["ann"]])
        self.assertEqual(self.call("GET", "/jobs?owner=nobody", Authorization=bearer["bob"])["jobs"], [])
        self.call("POST", "/jobs", body, 401, Authorization="Bearer ann secret-1")
        shown = tandem("train", "list", "--owner", "bob", "--url", f"http://{self.server.http}", "--token", "secret-2")
        self.assertRegex(shown.stdout, rf"(?m)^ *{ids['bob']} .* bob ")
        self.assertEqual(len(shown.stdout.splitlines()), 2)

    def test_without_tokens_there_is_one_owner(self):
        self.serve()
        self.assertEqual(self.submit(**SHORT)["owner"], "default")


class TrainingMetrics(PublishTest):
    def scrape(self):
        """(name, labels) → value, as Prometheus' own parser reads them."""
        values = {}
        for family in text_string_to_metric_families(self.server.call("GET", "/metrics").body.decode()):
            for sample in family.samples:
                if not sample.name.startswith("tandem_training_"):
                    continue
                self.assertTrue(family.documentation, family.name)
                self.assertEqual(family.type, "counter" if sample.name.endswith("_total") else "gauge", sample.name)
                values[(sample.name.removeprefix("tandem_training_"), *sorted(sample.labels.items()))] = sample.value
        return values

    def of_job(self, name, job_id, **labels):
        return self.scrape().get((name, *sorted({"job": str(job_id), **labels}.items())))

    def states(self):
        return {key[1][1]: value for key, value in self.scrape().items() if key[0] == "jobs"}

    def test_jobs_are_counted_and_forgotten(self):
        self.serve()
        self.assertEqual(set(self.states()), {"queued", "admitted", "running", "paused", "succeeded", "failed", "cancelled"})
        self.assertEqual(sum(self.states().values()), 0)
        job_id = self.submit(publish="on_success", steps=20, epochs=None, evaluation=None,
                             checkpoint={"every_steps": 5, "every_seconds": 0})["id"]
        self.wait_published(job_id)
        until(lambda: self.states()["succeeded"] == 1, "the job is counted as succeeded")
        self.assertEqual(self.of_job("iterations_total", job_id), 20)
        self.assertEqual(self.of_job("attempts_total", job_id), 1)
        self.assertEqual(self.of_job("retries_total", job_id), 0)
        self.assertEqual(self.of_job("checkpoints_total", job_id), 4)
        self.assertEqual(self.of_job("held_seconds_total", job_id, reason="paused"), 0)
        self.assertEqual(self.of_job("loss", job_id), self.show(job_id)["progress"]["loss"])
        results = {key[1][1]: value for key, value in self.scrape().items() if key[0] == "publishes_total"}
        self.assertEqual(results, {"published": 1, "not_better": 0, "failed": 0, "rolled_back": 0})
        self.call("POST", f"/jobs/{job_id}/rollback")
        self.assertEqual(self.scrape()[("publishes_total", ("result", "rolled_back"))], 1)
        self.call("DELETE", f"/jobs/{job_id}")
        until(lambda: self.states()["succeeded"] == 0, "the job is counted no more")
        self.assertEqual([key for key in self.scrape() if ("job", str(job_id)) in key], [])

    def test_counters_only_rise_when_trainers_are_lost_or_wait(self):
        self.serve()
        job_id = self.submit(checkpoint={"every_steps": 50, "every_seconds": 0}, **LONG)["id"]
        seen = {}

        def watch():
            for key, value in self.scrape().items():
                if key[0].endswith("_total"):
                    self.assertGreaterEqual(value, seen.get(key, 0), key)
                    seen[key] = value
            return seen

        def iterations():
            return watch().get(("iterations_total", ("job", str(job_id))), 0)

        # Beyond a checkpoint, so that steps are done again.
        until(lambda: iterations() > 60, "it trains")
        for trainer in self.server.trainers():
            os.kill(trainer, signal.SIGKILL)
        until(lambda: watch().get(("retries_total", ("job", str(job_id)))) == 1, "the loss of its trainer is counted")
        before = iterations()
        until(lambda: iterations() > before + 60, "another goes on")
        self.assertEqual(self.of_job("attempts_total", job_id), 2)
        step = self.show(job_id)["progress"]["step"]
        self.assertGreaterEqual(iterations(), step)
        self.assertEqual(self.of_job("held_seconds_total", job_id, reason="paused"), 0)
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: watch() and self.of_job("held_seconds_total", job_id, reason="paused") > 0.5, "waiting is counted")
        until(lambda: self.states()["paused"] == 1, "it is counted as paused")
        self.call("POST", f"/jobs/{job_id}/resume")
        held = self.of_job("held_seconds_total", job_id, reason="paused")
        before = iterations()
        until(lambda: iterations() > before + 60, "it goes on")
        self.assertEqual(self.of_job("held_seconds_total", job_id, reason="paused"), held, "only while it waits")
        self.call("POST", f"/jobs/{job_id}/cancel")
        self.assertGreater(self.of_job("iterations_total", job_id), before, "shown for a while after its end")

    def test_without_training_there_are_none(self):
        self.server = self.start(self.repository, "--allow-training", "false")
        self.assertEqual(self.scrape(), {})
