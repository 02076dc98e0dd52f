"""The machine's memory: what is counted, which jobs begin by it, and what a limit that changes does."""
import json
import time
import unittest

from cpu_limits import Group, own_group
from tandem_server import tandem, until
from training_jobs import TrainingTest

GIB = 1 << 30
ENDLESS = {"epochs": None, "steps": 10_000_000, "evaluation": None, "threads": 1}


class MemoryLimit(Group):
    """A group below our own with so much memory. Skips the test where none can be made."""
    def __init__(self, size):
        super().__init__()
        folder, version = own_group("memory")
        self.file = "memory.limit_in_bytes" if version == 1 else "memory.max"
        try:
            self._make(folder / f"tandem-memory-{time.monotonic_ns()}")
            self.set(size)
        except OSError as error:
            self.remove()
            raise unittest.SkipTest(f"no control group with a memory limit can be made: {error}") from error

    def set(self, size):
        (self.folders[0] / self.file).write_text(str(size))


class MachineMemory(TrainingTest):
    def memory(self):
        answer = self.server.call("GET", "/v2/memory")
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def sessions(self):
        return {session["name"]: session for session in self.memory()["sessions"]}

    def waits(self, job_id, words):
        """Waits until a queued job says so much of its reason."""
        return until(lambda: words in self.show(job_id)["reason"] and self.show(job_id), f"job {job_id} waits: {words}")

    def begin(self, **fields):
        submitted = self.submit(**ENDLESS, **fields)
        self.wait(submitted["id"], "running")
        return submitted["id"]

    def end(self, job_id):
        self.call("POST", f"/jobs/{job_id}/cancel")

    def test_models_are_counted_as_long_as_they_are_there(self):
        self.serve("--model-control-mode", "explicit", "--load-model", "digits", "--allow-training", "false")
        before = self.memory()
        model = self.sessions()["digits version 1"]
        self.assertEqual(model["kind"], "model")
        self.assertGreater(model["persistent_bytes"], 0)
        self.assertGreater(model["ephemeral_bytes"], 0)
        self.assertIn(model["lane"], [lane["id"] for lane in before["lanes"]])
        self.assertEqual(sum(region["bytes"] for region in before["regions"]), before["budget_bytes"])
        self.assertEqual(self.server.call("POST", "/v2/repository/models/digits/unload").status, 200)
        until(lambda: "digits version 1" not in self.sessions(), "the model is counted no more")
        self.assertEqual(self.memory()["lanes"], [])
        self.assertGreater(self.memory()["free_bytes"], before["free_bytes"])

    def test_a_job_waits_for_memory_and_begins_when_another_ends(self):
        self.serve("--max-training-jobs", "4")
        room = self.memory()["free_bytes"]
        first = self.begin(memory=room * 6 // 10)
        second = self.submit(**ENDLESS, memory=room * 6 // 10)
        reason = self.waits(second["id"], f"would fit when job {first} ends")["reason"]
        self.assertRegex(reason, r"^waits for memory: needs P .* \+ E .*; free .*; would fit when job \d+ ends$")
        # Who fits begins all the same.
        small = self.begin()
        self.assertEqual(self.show(second["id"])["state"], "queued")

        shown = self.memory()
        (waiting, ) = shown["waiting"]
        self.assertEqual(waiting["name"], f"job {second['id']}")
        self.assertIn(f"would fit when job {first} ends", waiting["reason"])
        self.assertEqual(waiting["overtaken"], 1)
        until(lambda: self.sessions()[f"job {small}"]["measured_bytes"], "the trainer is measured")
        job = self.sessions()[f"job {first}"]
        self.assertEqual(job["persistent_bytes"] + job["ephemeral_bytes"], room * 6 // 10)
        self.assertEqual(self.server.metric("tandem_memory_waiting_sessions"), 1)
        self.assertEqual(self.server.metric("tandem_memory_budget_bytes"), shown["budget_bytes"])
        self.assertEqual(self.server.metric(f'tandem_lane_bytes{{lane="{job["lane"]}"}}'), job["ephemeral_bytes"])

        text = tandem("memory", "--url", f"http://{self.server.http}")
        self.assertEqual(text.returncode, 0, text.stderr)
        for part in ("budget ", "[#", "digits version 1", f"job {first}", f"job {second['id']} waits for memory: "):
            self.assertIn(part, text.stdout)
        same = json.loads(tandem("memory", "--json", "--url", f"http://{self.server.http}").stdout)
        self.assertEqual(same["budget_bytes"], shown["budget_bytes"])

        self.end(first)
        self.wait(second["id"], "running")
        self.assertEqual(self.memory()["waiting"], [])
        for job_id in (second["id"], small):
            self.end(job_id)
        until(lambda: not any(session["kind"] == "job" for session in self.memory()["sessions"]), "all is given back")
        self.assertEqual(self.memory()["free_bytes"], room)

    def test_a_job_that_can_never_fit_is_refused_with_the_numbers(self):
        self.serve()
        self.assertIn("of the memory budget of", self.submit(status=413, memory=self.memory()["budget_bytes"])["error"])
        self.assertEqual(self.call("GET", "/jobs")["jobs"], [])

    def test_what_the_operator_gives_is_the_budget(self):
        self.serve("--memory", "2GiB", "--allow-training", "false")
        shown = self.memory()
        self.assertEqual((shown["budget_bytes"], shown["budget_from"]), (2 * GIB, "what --memory says"))
        self.assertLess(self.sessions()["front ends"]["persistent_bytes"] + self.sessions()["reserve"]["persistent_bytes"],
                        2 * GIB)
        for wrong in ("0%", "many", "-1GiB"):
            refused = tandem("serve", "--model-repository", self.repository, "--memory", wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(wrong, refused.stderr)

    def test_a_limit_that_falls_shows_what_is_too_much_and_admits_nobody(self):
        limit = MemoryLimit(8 * GIB)
        self.addCleanup(limit.remove)
        self.serve("--max-training-jobs", "4", within=limit.within)
        shown = self.memory()
        if shown["machine_bytes"] < 8 * GIB:
            self.skipTest("this machine has too little memory")
        self.assertEqual(shown["budget_bytes"], 8 * GIB * 8 // 10)
        self.assertIn("the control group's limit", shown["budget_from"])
        size = shown["free_bytes"] * 55 // 100
        first = self.begin(memory=size)
        second = self.submit(**ENDLESS, memory=size)
        self.waits(second["id"], f"would fit when job {first} ends")

        limit.set(5 * GIB)
        lowered = until(lambda: (now := self.memory())["overhang_bytes"] > 0 and now, "the limit is seen")
        self.assertEqual(lowered["budget_bytes"], 4 * GIB)
        self.assertEqual((lowered["free_bytes"], lowered["headroom_bytes"]), (0, 0))
        self.waits(second["id"], "too much in use")
        self.assertEqual(self.show(first)["state"], "running", "nothing is taken from who has it")
        self.end(first)
        until(lambda: f"job {first}" not in self.sessions(), "its memory is given back")
        self.waits(second["id"], "leaves no room for it at all")
        self.assertEqual(self.show(second["id"])["state"], "queued")

        limit.set(8 * GIB)
        self.wait(second["id"], "running")
