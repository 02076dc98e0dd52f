#!/usr/bin/env python3
"""Fine-tunes a model that is being served, with nothing but `requests`: submits a job, follows it, publishes the result, asks
the new version and, if told to, takes it back.

    pip install requests numpy
    ./tandem serve --model-repository models --data-root data
    python3 examples/finetune_requests.py --model digits --data digits.npz --data-root data

`--data` is a file below the server's data root, with arrays `x` and `y`. With `--data-root` that folder is on this machine,
and a file that is not there is made up: points around one place for each class, in the shape that the model takes.
"""
import argparse
import json
import pathlib
import time
import uuid

import numpy as np
import requests

DATATYPES = {"FP32": np.float32, "FP64": np.float64, "INT32": np.int32, "INT64": np.int64}
ENDED = ("succeeded", "failed", "cancelled")


class Refused(Exception):
    """What the server did not do, and why: all problems, each with the JSON pointer of its field."""


class Server:
    """The calls that the examples need."""
    def __init__(self, url, token=None, ca=None):
        self.url = url.rstrip("/")
        self.ca = ca
        self.http = requests.Session()
        if token:
            self.http.headers["Authorization"] = f"Bearer {token}"

    def call(self, method, path, body=None, timeout=60, **options):
        # Told with each call: a session's own `verify` gives way to REQUESTS_CA_BUNDLE.
        answer = self.http.request(method, self.url + path, json=body, timeout=timeout, verify=self.ca, **options)
        if answer.ok:
            return answer
        try:
            told = answer.json()
        except ValueError:
            told = {"error": f"{method} {self.url}{path}: HTTP {answer.status_code}"}
        problems = [problem["message"] for problem in told.get("problems", [])]
        raise Refused("\n  ".join(["the job has mistakes:", *problems]) if problems else told["error"])

    def submit(self, job, key):
        """With a key the call can be made again, by a network that failed or by a person, and there is still one job."""
        for attempt in range(5):
            try:
                return self.call("POST", "/v2/train/jobs", job, headers={"Idempotency-Key": key}).json()
            except (requests.ConnectionError, requests.Timeout):
                if attempt == 4:
                    raise
                time.sleep(1)

    def show(self, job_id):
        return self.call("GET", f"/v2/train/jobs/{job_id}").json()

    def events(self, job_id):
        """Yields what happens until the job has ended, as (kind, body). A stream that breaks is taken up where it stopped."""
        last, kind = "0", ""
        while True:
            try:
                # The server gives a sign of life every 15 s.
                path, headers = f"/v2/train/jobs/{job_id}/events", {"Last-Event-ID": last}
                with self.call("GET", path, headers=headers, stream=True) as answer:
                    for line in answer.iter_lines(decode_unicode=True):
                        field, _, value = line.partition(": ")
                        if field == "id":
                            last = value
                        elif field == "event":
                            kind = value
                        elif field == "data":
                            yield kind, json.loads(value)["body"]
                if self.show(job_id)["state"] in ENDED:
                    return
            except requests.RequestException as error:
                print(f"  the connection was lost, trying again: {error}")
            time.sleep(1)

    def train(self, job, key):
        """Submits a job and shows what happens to it. Gives it as it was when it had succeeded."""
        job_id = self.submit(job, key)["id"]
        print(f"job {job_id} trains {job['model']}")
        for kind, body in self.events(job_id):
            if kind == "state":
                print(f"  {body['to']}" + (f": {body['reason']}" if body.get("reason") else ""))
            elif kind == "evaluation":
                accuracy = f"  accuracy {body['accuracy']:.3f}" if body.get("accuracy") is not None else ""
                print(f"  step {body['step']}  evaluation: loss {body['loss']:.4f}{accuracy}")
        done = self.show(job_id)
        if done["state"] != "succeeded":
            raise Refused(f"job {job_id} is {done['state']}: {done['reason']}")
        loss = self.call("GET", f"/v2/train/jobs/{job_id}/metrics").json()["loss"]["values"]
        print(f"  loss {loss[0]:.4f} at the first step, {loss[-1]:.4f} at the last")
        return done

    def describe(self, model):
        return self.call("GET", f"/v2/models/{model}").json()

    def infer(self, model, x):
        """The first output for examples `x`, and the version that gave it."""
        described = self.describe(model)
        name, datatype, shape = (described["inputs"][0][part] for part in ("name", "datatype", "shape"))
        at_once = shape[0] if shape[0] > 0 else 32
        parts = []
        for begin in range(0, len(x), at_once):
            part = x[begin:begin + at_once]
            tensor = {"name": name, "datatype": datatype, "shape": part.shape, "data": part.ravel().tolist()}
            answer = self.call("POST", f"/v2/models/{model}/infer", {"inputs": [tensor]}).json()
            parts.append(np.array(answer["outputs"][0]["data"]).reshape(answer["outputs"][0]["shape"]))
        return np.concatenate(parts), answer["model_version"]

    def accuracy(self, model, x, y):
        scores, version = self.infer(model, x)
        return f"version {version} of {model}: {(scores.argmax(1) == y).mean():.1%} of {len(x)} examples right"


def make_data(path, described, count=1000):
    """Examples that a classifier can learn, in the shape that the model takes."""
    taken, classes = described["inputs"][0], described["outputs"][0]["shape"][-1]
    shape = taken["shape"][1:]
    if min([classes, *shape]) < 1:
        raise Refused(f"{path} is not there, and cannot be made up: the model leaves its shapes open")
    random = np.random.default_rng(7)
    y = random.integers(0, classes, count)
    x = random.standard_normal((classes, *shape))[y] + random.standard_normal((count, *shape)) / 2
    np.savez(path, x=x.astype(DATATYPES[taken["datatype"]]), y=y)
    print(f"{path}: {count} examples of {classes} classes, made up")


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (%(default)s)")
    parser.add_argument("--token", help="bearer token, if the server wants one")
    parser.add_argument("--ca", help="certificates to trust (PEM), for https")
    parser.add_argument("--model", required=True, help="the model that is served and is to be trained")
    parser.add_argument("--data", required=True, help="file with arrays x and y, below the server's data root")
    parser.add_argument("--data-root", type=pathlib.Path, help="the server's data root, where it is on this machine")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--job", type=json.loads, default={}, help="more fields of the job, as JSON: docs/training-jobs.md")
    parser.add_argument("--key", help="the same key is the same job, however often this is run (default: a new one)")
    parser.add_argument("--roll-back", action="store_true", help="take the new version back in the end")
    return parser.parse_args()


def main(flags):
    server = Server(flags.url, flags.token, flags.ca)
    examples = None
    if flags.data_root:
        file = flags.data_root / flags.data
        if not file.exists():
            make_data(file, server.describe(flags.model))
        examples = [np.load(file)[name][:200] for name in ("x", "y")]
        print(server.accuracy(flags.model, *examples))
    job = {
        "model": flags.model, "data": flags.data, "epochs": flags.epochs, "optimizer": {"lr": flags.lr},
        "evaluation": {"split": 0.2}
    }  # yapf: disable
    done = server.train({**job, **flags.job}, flags.key or str(uuid.uuid4()))
    if not done["published_version"]:
        done = server.call("POST", f"/v2/train/jobs/{done['id']}/publish").json()
    print(f"published as version {done['published_version']} of {flags.model}")
    if examples:
        print(server.accuracy(flags.model, *examples))
    if flags.roll_back:
        server.call("POST", f"/v2/train/jobs/{done['id']}/rollback")
        print(f"rolled back: version {server.describe(flags.model)['versions'][-1]} of {flags.model} is served")


if __name__ == "__main__":
    try:
        main(parse_flags())
    except (Refused, requests.RequestException, OSError, KeyError) as error:
        raise SystemExit(f"finetune_requests.py: {error}")
