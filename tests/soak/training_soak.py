"""Trains one model twice, once undisturbed and once with its trainer and its server killed many times, and compares.

Run by `./tandem soak training`. Exit code 0: the two models are the same, byte for byte; 1: they are not, or the job
did not succeed; 2: wrong usage.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import numpy as np

import models
from soak_program import run_soak, whole
from tandem_server import Server
from training_jobs import ENDED, examples, job, without_number

SERVER_SHARE = 10  # Every so many kills the server goes, and its trainer with it.
PROBE_STEPS = 2000


class Soak:
    """One server after another on the same state, and a job on it."""
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.chance = random.Random(options.seed)
        self.server = None
        (folder / "models").mkdir()
        (folder / "data").mkdir()
        models.place(folder / "models", "digits", models.mlp())
        x, y = examples(1000, seed=1)
        np.savez(folder / "data" / "train.npz", x=x, y=y)

    def serve(self):
        self.server = Server(self.folder / "models", "--state", self.folder / "state", "--data-root", self.folder / "data",
                             "--training-attempts", "1000", "--colocation", "none")

    def call(self, method, path, body=None):
        answer = self.server.call(method, "/v2/train" + path, body)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer}")
        return answer.json()

    def submit(self, steps):
        return self.call(
            "POST", "/jobs",
            job(deterministic=True,
                threads=1,
                epochs=None,
                steps=steps,
                evaluation={"split": 0.2, "every_steps": 500},
                checkpoint={"every_steps": 50, "every_seconds": 0, "keep": 3}))["id"]

    def show(self, job_id):
        return self.call("GET", f"/jobs/{job_id}")

    def wait(self, job_id):
        """Its record once it has ended."""
        while (record := self.show(job_id))["state"] not in ENDED:
            time.sleep(0.05)
        return record

    def trainer(self, job_id):
        """The trainer of the job once there is one; None when the job has ended."""
        while not (found := self.server.trainers()):
            if self.show(job_id)["state"] in ENDED:
                return None
            time.sleep(0.005)
        return found[0]

    def result(self, job_id):
        """The trained model, but for the number of its job."""
        return without_number((self.folder / "state" / "jobs" / str(job_id) / "model.onnx").read_bytes(), job_id)

    def kill_trainer(self, pid):
        os.kill(pid, signal.SIGKILL)
        while pid in self.server.trainers():
            time.sleep(0.005)

    def kill_server(self):
        self.server.process.kill()
        self.server.wait()
        self.server.stop()
        self.serve()

    def disturb(self, job_id, life, progress):
        """Kills until it was often enough, or the job has ended; (of trainers, of servers)."""
        trainers = servers = 0
        while trainers + servers < self.options.kills:
            pid = self.trainer(job_id)
            if pid is None:
                break
            time.sleep(self.chance.uniform(0, life))
            if pid not in self.server.trainers():
                continue
            if (trainers + servers + 1) % SERVER_SHARE == 0:
                self.kill_server()
                servers += 1
            else:
                self.kill_trainer(pid)
                trainers += 1
            progress(trainers + servers, self.show(job_id))
        return trainers, servers

    def stop(self):
        if self.server:
            self.server.stop()


def run(options, say):
    with tempfile.TemporaryDirectory(prefix="tandem-soak-") as folder:
        soak = Soak(pathlib.Path(folder), options)
        try:
            return measure(soak, options, say)
        finally:
            soak.stop()


def probe(soak):
    """What a trainer takes to its first step, in seconds, and its steps per second, as this machine is now."""
    begin = time.monotonic()
    job_id = soak.submit(PROBE_STEPS)
    while (record := soak.show(job_id))["progress"]["step"] == 0 and record["state"] not in ENDED:
        time.sleep(0.02)
    first = time.monotonic()
    if (record := soak.wait(job_id))["state"] != "succeeded":
        raise RuntimeError(f"the first job is {record['state']}: {record['reason']}")
    return first - begin, PROBE_STEPS / (time.monotonic() - first)


def measure(soak, options, say):
    soak.serve()
    start, rate = probe(soak)
    # From the moment a trainer is born, when it loads and reads, to well within its steps; and so many of these that it
    # is not done before it was killed often enough.
    life = 2 * start
    steps = options.steps or int(max(10 * PROBE_STEPS, rate * start * options.kills))
    say(f"a trainer takes {start:.1f} s to its first step and then makes {rate:.0f} a second")
    begin = time.monotonic()
    plain = soak.submit(steps)
    record = soak.wait(plain)
    alone = time.monotonic() - begin
    if record["state"] != "succeeded":
        raise RuntimeError(f"the undisturbed job is {record['state']}: {record['reason']}")
    say(f"undisturbed: {steps} steps in {alone:.1f} s")
    begin = time.monotonic()
    job_id = soak.submit(steps)

    def progress(kills, record):
        say(f"{kills}/{options.kills} kills, step {record['progress']['step']}/{steps}, {record['state']}")

    trainers, servers = soak.disturb(job_id, life, progress)
    record = soak.wait(job_id)
    events = soak.server.call("GET", f"/v2/train/jobs/{job_id}/events?follow=false").body.decode()
    same = record["state"] == "succeeded" and soak.result(job_id) == soak.result(plain)
    if same and trainers + servers < options.kills:
        say("the job ended before it was killed so often; give it more --steps")
    return {
        "kills": trainers + servers,
        "kills_of_trainers": trainers,
        "kills_of_servers": servers,
        "seed": options.seed,
        "steps": steps,
        "state": record["state"],
        "reason": record["reason"],
        "attempts": record["attempts"],
        "checkpoints_passed_over": events.count("event: checkpoint_skipped"),
        "seconds_undisturbed": round(alone, 1),
        "seconds": round(time.monotonic() - begin, 1),
        "same_bytes": same,
        "passed": same and trainers + servers >= options.kills,
    }


def main():
    parser = argparse.ArgumentParser(prog="./tandem soak training", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=whole(1, 900), default=100, help="how often; every tenth is the server's (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (1)")
    parser.add_argument("--steps", type=whole(1, 10**9), help="of the job (as many as it takes)")
    return run_soak(parser, run)


if __name__ == "__main__":
    sys.exit(main())
