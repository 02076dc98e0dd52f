"""Training jobs that take turns: policies by name, changed while jobs run, and trainers that are killed in their turn."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

import numpy as np

import models
from tandem_server import BINARY, PATIENCE, SANITIZED, until
from training_jobs import STEADY, TrainingTest, examples

LONG = {"epochs": None, "steps": 10_000_000, "evaluation": None, "checkpoint": {"every_seconds": 0, "every_steps": 500}}


def kill_trainers(server, times, chance, least, most):
    """Any of those that run, with so many seconds between two."""
    for _ in range(times):
        trainers = server.trainers()
        if trainers:
            os.kill(chance.choice(trainers), signal.SIGKILL)
        time.sleep(chance.uniform(least, most))


class Turns(TrainingTest):
    def take_turns(self, policy, jobs, *flags):
        # With all the threads that there are each keeps the device busy: one runs at a time.
        return self.serve("--max-training-jobs", str(jobs), "--job-policy", policy, "--training-threads", "1", *flags)

    def turns(self):
        return self.call("GET", "/turns")

    def states(self):
        return {job["job"]: job["state"] for job in self.turns()["jobs"]}

    def ran(self):
        return {job["job"]: job["ran_seconds"] for job in self.turns()["jobs"]}

    def steps(self, jobs):
        return [self.show(job["id"])["progress"]["step"] for job in jobs]

    def all_move(self, jobs):
        before = self.steps(jobs)
        until(lambda: all(now > then for now, then in zip(self.steps(jobs), before)), "all get on")

    def test_jobs_take_turns_and_a_turn_changes_no_bit(self):
        self.take_turns("fair", 3)
        expected = self.undisturbed()
        jobs = [self.submit(**STEADY) for _ in range(3)]
        until(lambda: self.turns()["switches"] > 5, "turns are taken")
        self.assertLessEqual(list(self.states().values()).count("runs"), 1)
        for job in jobs:
            self.wait(job["id"], "succeeded")
            self.assertEqual(self.result(job["id"]), expected)

    def test_the_policy_is_changed_while_jobs_run(self):
        self.take_turns("fair", 3)
        jobs = [self.submit(**LONG, priority=priority) for priority in (0, 0, 5)]
        until(lambda: len(self.ran()) == 3 and min(self.ran().values()) > 0.1, "all have run")
        for policy, first in (("fifo", jobs[0]), ("priority", jobs[2])):
            answer = self.call("POST", "/turns", {"policy": policy})
            self.assertEqual(answer["policy"], policy)
            until(lambda: self.states()[first["id"]] == "runs", f"the first by {policy}")
            before = self.ran()
            until(lambda: self.ran()[first["id"]] > before[first["id"]] + 0.3, "it runs")
            others = {job: ran for job, ran in self.ran().items() if job != first["id"]}
            for job, ran in others.items():
                # But for the end of the turn that it may have had.
                self.assertLess(ran - before[job], 0.2)
        self.call("POST", "/turns", {"policy": "pack"})
        until(lambda: list(self.states().values()) == ["runs"] * 3, "all run side by side")
        for wrong, words in (({"policy": "rr"}, "known are fifo, pack, srtf, fair, fair_memory, priority"),
                             ({"policy": 7}, "policy must be a string"), ({"order": "fifo"}, "'order'"), ({}, "policy")):
            self.assertIn(words, self.call("POST", "/turns", wrong, 400)["error"])
        self.assertEqual(self.turns()["policy"], "pack")
        for job in jobs:
            self.call("POST", f"/jobs/{job['id']}/cancel")

    def test_pausing_and_cancelling_leave_the_turn_to_others(self):
        self.take_turns("fifo", 2)
        first, second = (self.submit(**LONG) for _ in range(2))
        until(lambda: self.states() == {first["id"]: "runs", second["id"]: "waits"}
              or self.states() == {first["id"]: "leaves", second["id"]: "waits"}, "one after the other")
        self.call("POST", f"/jobs/{first['id']}/pause")
        until(lambda: self.states()[second["id"]] == "runs", "the other has the turn")
        self.all_move([second])
        self.call("POST", f"/jobs/{first['id']}/resume")
        until(lambda: self.states()[second["id"]] == "waits", "who came first has it again")
        self.all_move([first])
        self.call("POST", f"/jobs/{first['id']}/cancel")
        self.all_move([second])
        self.call("POST", f"/jobs/{second['id']}/cancel")

    def test_a_trainer_that_is_killed_whenever_stops_nobody(self):
        self.take_turns("fair", 3, "--training-attempts", "1000")
        expected = self.undisturbed()
        jobs = [self.submit(**STEADY) for _ in range(3)]
        until(lambda: self.turns()["switches"] > 5, "turns are taken")
        kill_trainers(self.server, 6, random.Random(7), 0, 0.3)
        for job in jobs:
            self.wait(job["id"], "succeeded")
            self.assertEqual(self.result(job["id"]), expected)

    def test_a_trainer_that_is_stopped_in_its_turn_is_not_waited_for(self):
        self.take_turns("fifo", 2)
        first = self.submit(**LONG)
        self.all_move([first])
        (stopped,) = self.server.trainers()
        second = self.submit(**LONG)
        until(lambda: self.states().get(second["id"]) == "waits", "one waits")
        os.kill(stopped, signal.SIGSTOP)
        try:
            until(lambda: self.turns()["jobs"][0]["overdue"], "it is not waited for any more")
            self.all_move([second])
        finally:
            os.kill(stopped, signal.SIGCONT)
        until(lambda: not self.turns()["jobs"][0]["overdue"], "it has come to a boundary")
        self.all_move([first])
        for job in (first, second):
            self.call("POST", f"/jobs/{job['id']}/cancel")

    def test_jobs_that_wait_for_their_turn_end_with_the_server_and_go_on(self):
        self.take_turns("fifo", 3)
        expected = self.undisturbed()
        jobs = [self.submit(**STEADY) for _ in range(3)]
        until(lambda: list(self.states().values()).count("waits") == 2, "two wait")
        self.wait_step(jobs[0]["id"], 100)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0)
        self.take_turns("srtf", 3)
        for job in jobs:
            self.wait(job["id"], "succeeded")
            self.assertEqual(self.result(job["id"]), expected)

    def test_the_command_shows_turns_and_changes_the_policy(self):
        self.take_turns("fifo", 2)
        job = self.submit(**LONG)
        until(lambda: self.states().get(job["id"]) == "runs", "it runs")
        run = lambda *arguments: subprocess.run(
            [str(BINARY), "train", "turns", *arguments, "--url", f"http://{self.server.http}"],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        shown = run()
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("policy fifo", shown.stdout)
        self.assertIn("runs", shown.stdout)
        changed = run("--policy", "srtf", "--json")
        self.assertEqual(json.loads(changed.stdout)["policy"], "srtf")
        refused = run("--policy", "rr")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("known are fifo", refused.stderr)
        self.assertIn("tandem_job_switches_total 0", self.server.call("GET", "/metrics").body.decode())
        self.call("POST", f"/jobs/{job['id']}/cancel")


@unittest.skipIf(SANITIZED, "sanitizers watch over memory of their own")
class Lanes(TrainingTest):
    """Jobs that do not fit side by side and take turns in one lane."""

    def setUp(self):
        super().setUp()
        # A step takes some hundred MB that are gone at its end, and weights and optimizer next to nothing.
        models.place(self.repository, "digits", models.mlp(hidden=10_000))
        x, y = examples(4000, seed=1)
        np.savez(self.data / "train.npz", x=x, y=y)

    spec = {"deterministic": True, "threads": 1, "epochs": None, "steps": 12, "evaluation": None, "batch_size": 4000,
            "checkpoint": {"every_seconds": 0, "every_steps": 4}}

    def memory(self):
        return json.loads(self.server.call("GET", "/v2/memory").body)

    def lanes(self):
        """Jobs by lane, of those that have one."""
        found = {}
        for session in self.memory()["sessions"]:
            if session["kind"] == "job":
                found.setdefault(session["lane"], []).append(session["name"])
        return found

    def shared(self):
        return max((len(jobs) for jobs in self.lanes().values()), default=0)

    def trainers_mapping(self):
        """Bytes that each trainer has of a lane."""
        held = {}
        for trainer in self.server.trainers():
            kilobytes, inside = 0, False
            for line in open(f"/proc/{trainer}/smaps", encoding="utf-8"):
                if "-" in line.split(" ")[0]:
                    inside = "tandem-lane" in line
                elif inside and line.startswith("Rss:"):
                    kilobytes += int(line.split()[1])
            held[trainer] = kilobytes * 1024
        return held

    def begin(self, *flags):
        """A server in which one job has been alone, and what that has learnt."""
        self.serve("--max-training-jobs", "3", "--job-policy", "fair", "--training-threads", "1", "--training-attempts",
                   "100", "--memory", "3GiB", *flags)
        alone = self.submit(**self.spec)
        done = self.wait(alone["id"], "succeeded")
        self.assertGreater(done["memory"]["measured"]["ephemeral"], 400_000_000)
        return self.result(alone["id"])

    def submit_all(self, **more):
        """Three jobs, of which the last has found no room for a lane of its own: the first and it are in one."""
        jobs = [self.submit(**{**self.spec, **more}) for _ in range(3)]
        until(lambda: self.shared() == 2, "two share a lane")
        return jobs

    def test_jobs_that_share_a_lane_learn_what_they_would_alone(self):
        expected = self.begin()
        jobs = self.submit_all(steps=10_000)
        until(lambda: sum(held > 100_000_000 for held in self.trainers_mapping().values()) >= 2, "the pages are shared")
        for job in jobs:
            self.call("POST", f"/jobs/{job['id']}/cancel")
        jobs = self.submit_all()
        for job in jobs:
            self.wait(job["id"], "succeeded")
            self.assertEqual(self.result(job["id"]), expected)

    def test_trainers_that_are_killed_in_a_lane_hurt_nobody(self):
        expected = self.begin()
        jobs = self.submit_all()
        kill_trainers(self.server, 4, random.Random(3), 0.1, 0.6)
        for job in jobs:
            self.wait(job["id"], "succeeded")
            self.assertEqual(self.result(job["id"]), expected)

    def test_one_that_is_paused_leaves_the_lane_to_others(self):
        self.begin()
        first, second, third = self.submit_all(steps=10_000)
        self.wait_step(first["id"], 1)
        self.call("POST", f"/jobs/{first['id']}/pause")
        for job in (second, third):
            step = self.show(job["id"])["progress"]["step"]
            self.wait_step(job["id"], step + 2)
        trainers = self.server.call("GET", "/v2/colocation").json()["trainers"]
        self.assertIn((first["id"], "paused"), [(trainer["job"], trainer["state"]) for trainer in trainers])
        self.call("POST", f"/jobs/{first['id']}/resume")
        self.wait_step(first["id"], self.show(first["id"])["progress"]["step"] + 2)
        for job in (first, second, third):
            self.call("POST", f"/jobs/{job['id']}/cancel")
