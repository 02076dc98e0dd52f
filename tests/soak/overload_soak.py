"""Offers ten times what a server can answer for a minute, beside training, and sees how it stands during and afterwards.

Run by `./tandem soak overload`. Exit code 0: every request was answered or refused, the server stayed live and small,
its trainer lived, and afterwards requests were in time again; 1: not all of that; 2: wrong usage.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import numpy as np

import models
from soak_program import run_soak, whole
from tandem_server import BINARY, Server
from training_jobs import examples, job

MODEL = "squeezenet"
USERS_AT_CAPACITY = 4
SLO_ANSWERS = 5  # The SLO, in answers' times.
LEAST_AFTERWARDS = 0.95  # In time, at half of the capacity.
MOST_GROWTH = 256 << 20
MOST_SILENCE = 2.0  # Seconds until /v2/health/live answers.


class Watch(threading.Thread):
    """Looks at the server all the time: how soon it answers, how much it holds, how long its queue is."""
    def __init__(self, server):
        super().__init__()
        self.server, self.over = server, threading.Event()
        self.slowest, self.most_bytes, self.deepest, self.broken = 0.0, 0, 0, None

    def run(self):
        try:
            while not self.over.wait(0.2):
                begin = time.monotonic()
                if (live := self.server.call("GET", "/v2/health/live")).status != 200:
                    raise RuntimeError(f"live: {live}")
                self.slowest = max(self.slowest, time.monotonic() - begin)
                self.most_bytes = max(self.most_bytes, self.server.resident_bytes())
                self.deepest = max(self.deepest, int(self.server.metric("tandem_queue_depth")))
        except (OSError, RuntimeError) as error:
            self.broken = str(error)

    def end(self):
        self.over.set()
        self.join()


def load(server, folder, *arguments):
    """What the load generator tells of the model."""
    report = folder / "load.json"
    subprocess.run([BINARY, "loadgen", "--url", f"http://127.0.0.1:{server.http_port}", "--model", MODEL, "--json", report,
                    *map(str, arguments)],
                   stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL,
                   check=False)  # Whether the SLO was kept is for us to judge.
    return json.loads(report.read_text())["models"][0]


def steps(server, job_id):
    record = server.call("GET", f"/v2/train/jobs/{job_id}").json()
    return record["progress"]["step"], record["attempts"]


def measure(folder, server, options, say):
    submitted = server.call("POST", "/v2/train/jobs", job(epochs=None, steps=10**8, evaluation=None)).json()
    alone = load(server, folder, "--users", 1, "--duration", 3)
    capacity = load(server, folder, "--users", USERS_AT_CAPACITY, "--duration", 5)["achieved_rate"]
    slo_ms = SLO_ANSWERS * alone["latency"]["p50_ms"]
    say(f"it answers {capacity:.0f} a second; the SLO is {slo_ms:.1f} ms")
    settled = server.resident_bytes()
    watch = Watch(server)
    watch.start()
    over = load(server, folder, "--rate", options.times * capacity, "--slo-ms", slo_ms, "--duration", options.seconds,
                "--warmup", 0)
    watch.end()
    say(f"{over['ok']} of {over['scheduled']} in time under {options.times} times that")
    after = load(server, folder, "--rate", capacity / 2, "--slo-ms", slo_ms, "--duration", 10, "--warmup", 1)
    before, _ = steps(server, submitted["id"])
    time.sleep(3)
    made, attempts = steps(server, submitted["id"])
    figures = {
        "capacity_per_s": round(capacity, 1),
        "slo_ms": round(slo_ms, 2),
        "offered": over["scheduled"],
        "in_time": over["ok"],
        "late": over["late"],
        "refused": over["rejected"],
        "failed": over["failed"] + after["failed"],
        "goodput_of_capacity": round(over["goodput"] / capacity, 3),
        "p50_of_refusals_ms": round(over["rejection_latency"]["p50_ms"], 2),
        "in_time_afterwards": round(after["attainment"], 4),
        "slowest_live_s": round(watch.slowest, 3),
        "deepest_queue": watch.deepest,
        "growth_mb": round(max(0, watch.most_bytes - settled) / 1e6, 1),
        "broken": watch.broken,
        "attempts_of_the_trainer": attempts,
        "steps_in_3_s_afterwards": made - before,
    }
    figures["passed"] = (figures["failed"] == 0 and watch.broken is None and watch.slowest < MOST_SILENCE
                         and watch.most_bytes - settled < MOST_GROWTH and attempts == 1 and made > before
                         and after["attainment"] >= LEAST_AFTERWARDS)
    return figures


def run(options, say):
    with tempfile.TemporaryDirectory(prefix="tandem-soak-") as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        models.place(folder / "models", MODEL, models.LIGHT_MODELS / f"light_{MODEL}.onnx")
        models.place(folder / "models", "digits", models.mlp())
        x, y = examples(1000, seed=1)
        np.savez(folder / "data" / "train.npz", x=x, y=y)
        with Server(folder / "models", "--state", folder / "state", "--data-root", folder / "data",
                    "--training-hang-secs", 10) as server:
            return measure(folder, server, options, say)


def main():
    parser = argparse.ArgumentParser(prog="./tandem soak overload", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=whole(1, 3600), default=60, help="how long (60)")
    parser.add_argument("--times", type=whole(2, 100), default=10, help="what the server can answer (10)")
    return run_soak(parser, run)


if __name__ == "__main__":
    sys.exit(main())
