"""A small task that a model can learn, and jobs about it."""
import json

import numpy as np

import models
from onnx_file import message
from tandem_server import PATIENCE, TandemTest, until

ENDED = ("succeeded", "failed", "cancelled")
# Fields of a job that is long enough to be hit in the middle; the same bits every time.
STEADY = {
    "deterministic": True,
    "threads": 1,
    "epochs": None,
    "steps": 20_000,
    "evaluation": {"split": 0.2, "every_steps": 1000},
    "checkpoint": {"every_steps": 100, "every_seconds": 0, "keep": 3}
}


def examples(count, seed):
    """Points around ten places in 64 dimensions, and which place each belongs to."""
    places = np.random.default_rng(100).standard_normal((10, 64)).astype(np.float32)
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    return places[labels] + random.standard_normal((count, 64)).astype(np.float32) * 0.5, labels


def job(**fields):
    """A job on `digits` that takes a second or so and learns; `fields` in place of its own."""
    spec = {
        "name": "learn",
        "model": "digits",
        "data": {
            "path": "train.npz"
        },
        "optimizer": {
            "kind": "adamw",
            "lr": 0.01
        },
        "batch_size": 32,
        "epochs": 3,
        "evaluation": {
            "split": 0.2
        },
        "seed": 7
    }
    spec.update(fields)
    return {name: value for name, value in spec.items() if value is not None}


def without_number(model, job_id):
    """The bytes of a trained model but for the number of its job, which is all that tells it from its like."""
    origin = message(14, message(1, "tandem.job") + message(2, str(job_id)))
    if model.count(origin) != 1:
        raise AssertionError(f"the number of job {job_id} is {model.count(origin)} times in its model")
    return model.replace(origin, b"")


class TrainingTest(TandemTest):
    """Tests with a server that trains: a model `digits`, and data under the root `data`."""
    def setUp(self):
        super().setUp()
        self.repository, self.data, self.state = (self.folder / name for name in ("models", "data", "state"))
        for folder in (self.repository, self.data):
            folder.mkdir()
        models.place(self.repository, "digits", models.mlp())
        x, y = examples(1000, seed=1)
        np.savez(self.data / "train.npz", x=x, y=y)

    def serve(self, *flags, **options):
        # On a machine that others keep busy an idle trainer would never get on.
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "none", *flags, **options)
        return self.server

    def call(self, method, path, body=None, status=200, **headers):
        answer = self.server.call(method, "/v2/train" + path, body,
                                  {name.replace("_", "-"): value for name, value in headers.items()})
        self.assertEqual(answer.status, status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def submit(self, status=201, key=None, **fields):
        headers = {"Idempotency_Key": key} if key else {}
        return self.call("POST", "/jobs", job(**fields), status, **headers)

    def undisturbed(self):
        """The result of STEADY when nothing happens to it."""
        submitted = self.submit(**STEADY)
        self.wait(submitted["id"], "succeeded")
        return self.result(submitted["id"])

    def show(self, job_id):
        return self.call("GET", f"/jobs/{job_id}")

    def wait(self, job_id, *states, seconds=PATIENCE):
        """The job once it is in one of the states; fails when it ends in another."""
        def arrived():
            record = self.show(job_id)
            if record["state"] in ENDED and record["state"] not in states:
                self.fail(f"the job is {record['state']}: {record['reason']}\n{self.log(job_id)}")
            return record if record["state"] in states else None

        return until(arrived, f"job {job_id} is {' or '.join(states)}", seconds)

    def wait_step(self, job_id, step):
        return until(lambda: (record := self.show(job_id))["progress"]["step"] >= step and record, f"step {step}")

    def log(self, job_id):
        return self.server.call("GET", f"/v2/train/jobs/{job_id}/logs").body.decode()

    def events(self, job_id):
        """The events so far: (id, kind, body)."""
        text = self.server.call("GET", f"/v2/train/jobs/{job_id}/events?follow=false").body.decode()
        found = []
        for block in text.strip().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if fields:
                found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])["body"]))
        return found

    def kinds(self, job_id):
        return [kind for _, kind, _ in self.events(job_id)]

    def result_file(self, job_id):
        return self.state / "jobs" / str(job_id) / "model.onnx"

    def result(self, job_id):
        """The bytes of the trained model but for the job's number."""
        return without_number(self.result_file(job_id).read_bytes(), job_id)

    def accuracy(self, version=""):
        """Of what is served, on examples that no job has seen."""
        x, y = examples(400, seed=2)
        path = f"/v2/models/digits{'/versions/' + version if version else ''}/infer"
        right = 0
        for begin in range(0, len(x), 20):
            part = x[begin:begin + 20]
            answer = self.server.call("POST", path, {
                "inputs": [{"name": "x", "datatype": "FP32", "shape": list(part.shape), "data": part.flatten().tolist()}]
            })
            self.assertEqual(answer.status, 200, answer.body)
            scores = np.array(answer.json()["outputs"][0]["data"]).reshape(-1, 10)
            right += int((scores.argmax(1) == y[begin:begin + 20]).sum())
        return right / len(x)
