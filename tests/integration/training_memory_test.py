"""What happens to training jobs that need more memory than they may have, and to everybody else then."""
import os
import signal
import subprocess
import unittest

import numpy as np

import models
from tandem_server import SANITIZED, status, until
from training_jobs import STEADY, TrainingTest, examples, job


class Memory(TrainingTest):
    @unittest.skipIf(SANITIZED, "sanitizers take what they like")
    def test_a_trainer_without_memory_fails_its_job_alone(self):
        self.serve("--training-attempts", "1")
        submitted = self.submit(steps=1, epochs=None, memory="40MB")
        self.assertIn("memory", self.wait(submitted["id"], "failed")["reason"])
        self.assertLess(self.accuracy(), 0.5)

    @unittest.skipIf(SANITIZED, "sanitizers take what they like")
    def test_a_trainer_that_runs_out_of_memory_goes_on_from_its_last_checkpoint(self):
        # Steps of 200 examples, evaluations of 20,000: those need far more, and the first comes before the first step.
        models.place(self.repository, "digits", models.mlp(hidden=2000))
        for name, count in (("few.npz", 200), ("many.npz", 20_000)):
            x, y = examples(count, seed=count)
            np.savez(self.data / name, x=x, y=y)
        spec = {**STEADY, "steps": 600, "batch_size": 20_000, "data": {"path": "few.npz"}}
        spec["evaluation"] = {"data": {"path": "many.npz"}, "every_steps": 500}
        spec["checkpoint"] = {"every_steps": 20, "every_seconds": 0}
        self.serve("--max-training-jobs", "2")
        plain = self.submit(**spec)
        self.wait(plain["id"], "succeeded")
        submitted = self.submit(**spec, memory="8GB")
        until(lambda: "checkpoint" in self.kinds(submitted["id"]), "a checkpoint")
        (first, ) = self.server.trainers()
        os.kill(first, signal.SIGKILL)
        until(lambda: self.kinds(submitted["id"]).count("plan") == 2, "the next trainer has begun")
        begun = [body["first_step"] for _, kind, body in self.events(submitted["id"]) if kind == "plan"][1]
        self.wait_step(submitted["id"], begun + 1)
        (second, ) = self.server.trainers()
        subprocess.run(["prlimit", f"--pid={second}", "--data=1000000:1000000"], check=True)
        other = self.submit(steps=20, epochs=None)
        done = self.wait(submitted["id"], "succeeded")
        self.assertEqual(done["attempts"], 3)
        self.assertEqual(self.result(done["id"]), self.result(plain["id"]))
        reasons = [body["reason"] for _, _, body in self.events(done["id"]) if body.get("action") == "retry"]
        self.assertIn("out of memory", reasons[1])
        self.assertIn("the limit of the job is 8000000000 bytes", reasons[1])
        self.assertEqual(self.wait(other["id"], "succeeded")["attempts"], 1)
        self.accuracy()

    @unittest.skipIf(SANITIZED, "sanitizers take what they like")
    def test_a_job_that_outgrows_its_limit_in_the_middle_fails_alone_and_says_so(self):
        models.place(self.repository, "digits", models.mlp(hidden=200_000))
        self.serve("--training-attempts", "2", "--max-training-jobs", "2")
        hungry = {"epochs": None, "steps": 10_000_000, "evaluation": None, "threads": 1, "batch_size": 4}
        probe = self.submit(**hungry, checkpoint={"every_seconds": 0, "every_steps": 1_000_000})
        self.wait_step(probe["id"], 5)
        (trainer, ) = self.server.trainers()
        held = max(int(status(trainer, "VmData").split()[0]) * 1024 for _ in range(100))
        self.call("POST", f"/jobs/{probe['id']}/cancel")
        # Weights, gradients and two states of 59 MB each: enough for the steps, also if the gradients were not there
        # when that was measured, and not for the copy of a checkpoint, which is three times as much.
        limit = held + 60_000_000
        submitted = self.submit(**hungry, memory=limit, checkpoint={"every_seconds": 0, "every_steps": 10})
        other = self.submit(steps=5, epochs=None, evaluation=None)
        done = self.wait(submitted["id"], "failed")
        self.assertIn("out of memory", done["reason"])
        self.assertIn(f"the limit of the job is {limit} bytes (/memory)", done["reason"])
        self.assertEqual(done["attempts"], 2)
        self.assertGreaterEqual(done["progress"]["step"], 1)
        self.assertEqual(self.wait(other["id"], "succeeded")["attempts"], 1)
        self.accuracy()

    @unittest.skipIf(SANITIZED, "sanitizers take what they like")
    def test_a_job_that_fits_computes_again_and_ends_with_the_same_bits_though_it_is_killed(self):
        models.place(self.repository, "digits", models.deep())
        x, y = examples(4096, seed=1)
        np.savez(self.data / "train.npz", x=x, y=y)
        self.serve("--max-training-jobs", "2")
        spec = {**STEADY, "steps": 30, "batch_size": 4096, "evaluation": None, "optimizer": {"kind": "sgd", "lr": 0.01}}
        spec["checkpoint"] = {"every_steps": 5, "every_seconds": 0}
        plain = self.call("POST", "/estimate", job(**spec))
        self.assertNotIn("fit", plain)
        bound = plain["persistent"]["total"] + plain["ephemeral"] * 6 // 10
        fitted = self.call("POST", "/estimate", job(**spec, memory={"fit": bound}))
        self.assertLess(fitted["ephemeral"], plain["ephemeral"] * 6 // 10)
        self.assertLess(fitted["fit"]["least"], fitted["ephemeral"] + 1)
        self.assertGreater(fitted["fit"]["slowdown"], 0)

        held = self.submit(**spec)
        self.wait(held["id"], "succeeded")
        submitted = self.submit(**spec, memory={"fit": bound})
        self.assertEqual(submitted["job"]["memory"], {"fit": bound})
        self.wait_step(submitted["id"], 10)
        (trainer, ) = self.server.trainers()
        os.kill(trainer, signal.SIGKILL)
        done = self.wait(submitted["id"], "succeeded")
        self.assertEqual(done["attempts"], 2)
        self.assertEqual(self.result(done["id"]), self.result(held["id"]))
        self.assertGreater(done["memory"]["estimate"]["fit"]["slowdown"], 0)
        self.assertLess(done["memory"]["measured"]["ephemeral"], plain["ephemeral"] * 6 // 10)

        free = self.submit(**{**spec, "steps": 3}, memory="fit")
        done = self.wait(free["id"], "succeeded")
        self.assertEqual(done["memory"]["estimate"]["fit"]["slowdown"], 0, "there is more than it needs")

    @unittest.skipIf(SANITIZED, "sanitizers take what they like")
    def test_a_job_that_does_not_fit_even_so_says_what_it_takes(self):
        models.place(self.repository, "digits", models.deep())
        self.serve("--training-attempts", "1")
        spec = {"epochs": None, "steps": 1, "evaluation": None}
        answer = self.call("POST", "/estimate", job(**spec, memory={"fit": "2MB"}), status=413)
        self.assertIn("/memory is 2000000 bytes, and", answer["error"])
        needed = self.call("POST", "/estimate", job(**spec))["persistent"]
        bound = needed["total"] + 300_000_000
        spec["batch_size"] = 100_000
        x, y = examples(100_000, seed=1)
        np.savez(self.data / "train.npz", x=x, y=y)
        answer = self.call("POST", "/estimate", job(**spec, memory={"fit": bound}), status=413)
        self.assertIn("with memory: fit it takes", answer["error"])
        submitted = self.submit(**spec, memory={"fit": bound})
        self.assertIn("with memory: fit it takes", self.wait(submitted["id"], "failed")["reason"])

    @unittest.skipUnless("TANDEM_TEST_CGROUP" in os.environ, "TANDEM_TEST_CGROUP names no control group to make others in")
    def test_a_control_group_bounds_a_trainer(self):
        self.serve("--training-attempts", "2", "--training-cgroup", os.environ["TANDEM_TEST_CGROUP"])
        submitted = self.submit(steps=1, epochs=None, memory="40MB")
        reason = self.wait(submitted["id"], "failed")["reason"]
        self.assertIn("out of memory: the kernel ended its trainer; the limit of the job is 40000000 bytes", reason)
        self.assertEqual(os.path.exists(os.path.join(os.environ["TANDEM_TEST_CGROUP"], f"job-{submitted['id']}")), False)
        self.accuracy()
