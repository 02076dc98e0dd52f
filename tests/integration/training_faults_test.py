"""What happens to training jobs when trainers and servers are killed, stopped or hang."""
import os
import random
import signal
import sys
import time

import models
from tandem_server import status, until
from training_jobs import STEADY, TrainingTest

class Faults(TrainingTest):
    def kill_trainer(self, job_id):
        """Kills the trainer of the job; False when the job was faster."""
        ended = lambda: self.show(job_id)["state"] == "succeeded"
        until(lambda: self.server.trainers() or ended(), "a trainer runs")
        for trainer in self.server.trainers():
            os.kill(trainer, signal.SIGKILL)
            until(lambda: trainer not in self.server.trainers(), "it has gone")
        return not ended()

    def test_a_killed_trainer_changes_no_bit_of_the_result(self):
        self.serve("--training-attempts", "20")
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 1)
        chance = random.Random(5)
        kills = 0
        while kills < 5 and self.kill_trainer(submitted["id"]):
            kills += 1
            until(lambda: self.server.trainers() or self.show(submitted["id"])["state"] == "succeeded", "it is tried again")
            time.sleep(chance.uniform(0, 1))
        self.assertGreater(kills, 0)
        done = self.wait(submitted["id"], "succeeded")
        self.assertGreater(done["attempts"], kills)
        self.assertEqual(self.result(submitted["id"]), expected)

    def test_a_killed_server_goes_on_with_its_jobs(self):
        self.serve()
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        waiting = self.submit(**STEADY)
        self.wait(submitted["id"], "running")
        self.wait_step(submitted["id"], 200)
        (trainer, ) = self.server.trainers()
        self.server.process.kill()
        self.server.wait()
        until(lambda: not os.path.exists(f"/proc/{trainer}"), "the trainer goes with its server")
        self.serve()
        for one in (submitted, waiting):
            self.wait(one["id"], "succeeded")
            self.assertEqual(self.result(one["id"]), expected)

    def test_a_stopped_server_leaves_a_checkpoint(self):
        self.serve()
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 250)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0)
        self.serve()
        self.wait(submitted["id"], "succeeded")
        self.assertEqual(self.result(submitted["id"]), expected)
        first_steps = [body["first_step"] for _, kind, body in self.events(submitted["id"]) if kind == "plan"]
        self.assertEqual(len(first_steps), 2)
        self.assertGreaterEqual(first_steps[1], 250)

    def test_a_corrupt_checkpoint_is_passed_over(self):
        self.serve()
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait(submitted["id"], "running")
        folder = self.state / "jobs" / str(submitted["id"])
        until(lambda: len(list(folder.glob("step-*.checkpoint"))) >= 2, "two checkpoints")
        self.server.process.kill()
        self.server.wait()
        newest = max(folder.glob("step-*.checkpoint"))
        damaged = bytearray(newest.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        newest.write_bytes(damaged)
        self.serve()
        self.wait(submitted["id"], "succeeded")
        self.assertEqual(self.result(submitted["id"]), expected)
        skipped = [body for _, kind, body in self.events(submitted["id"]) if kind == "checkpoint_skipped"]
        self.assertEqual([body["file"] for body in skipped], [newest.name])

    def test_a_trainer_that_cannot_live_fails_its_job_after_some_attempts(self):
        self.serve("--training-attempts", "2", "--trainer", "/bin/false")
        submitted = self.submit(steps=1, epochs=None)
        done = self.wait(submitted["id"], "failed")
        self.assertEqual(done["attempts"], 2)
        self.assertIn("exit code 1", done["reason"])
        self.assertEqual(self.server.call("GET", "/v2/health/ready").status, 200)

    def test_a_trainer_that_is_killed_while_it_writes_a_checkpoint_goes_on_from_the_one_before(self):
        models.place(self.repository, "digits", models.mlp(hidden=20_000))  # Whose checkpoint takes a while to write.
        self.serve()
        steady = {**STEADY, "steps": 400, "evaluation": None, "checkpoint": {"every_steps": 20, "every_seconds": 0}}
        plain = self.submit(**steady)
        self.wait(plain["id"], "succeeded")
        submitted = self.submit(**steady)
        folder = self.state / "jobs" / str(submitted["id"])
        until(lambda: list(folder.glob("step-*.checkpoint")), "a checkpoint")
        (trainer, ) = self.server.trainers()

        def stopped_while_it_writes():
            os.kill(trainer, signal.SIGSTOP)
            until(lambda: status(trainer, "State").startswith("T"), "it is stopped")
            if partial := list(folder.glob("step-*.checkpoint.partial")):
                return partial
            os.kill(trainer, signal.SIGCONT)
            return None

        (partial, ) = until(stopped_while_it_writes, "it is stopped in the middle of a checkpoint")
        os.kill(trainer, signal.SIGKILL)
        before = max(folder.glob("step-*.checkpoint"))
        done = self.wait(submitted["id"], "succeeded")
        self.assertEqual(done["attempts"], 2)
        self.assertEqual(self.result(done["id"]), self.result(plain["id"]))
        plans = [body["first_step"] for _, kind, body in self.events(done["id"]) if kind == "plan"]
        self.assertEqual(plans, [0, int(before.stem.removeprefix("step-"))])
        self.assertFalse(partial.exists())

    def test_a_trainer_that_hangs_is_killed_and_changes_no_bit_of_the_result(self):
        self.serve("--training-hang-secs", "10", "--training-attempts", "20")
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 200)
        (trainer, ) = self.server.trainers()
        os.kill(trainer, signal.SIGSTOP)
        until(lambda: trainer not in self.server.trainers(), "it is killed")
        self.accuracy()
        done = self.wait(submitted["id"], "succeeded")
        self.assertGreaterEqual(done["attempts"], 2)
        self.assertEqual(self.result(done["id"]), expected)
        reasons = [body.get("reason") for _, kind, body in self.events(done["id"]) if kind == "state"]
        self.assertIn("its trainer did nothing for 10 s and was killed", reasons)

    def test_a_server_hears_of_its_trainers_whatever_whoever_started_it_ignores(self):
        ignoring = [
            sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
            "os.execv(sys.argv[1], sys.argv[1:])"
        ]
        self.serve(within=lambda command: ignoring + command)
        self.wait(self.submit(steps=20, epochs=None, evaluation=None)["id"], "succeeded")

    def test_a_second_signal_does_not_wait_for_a_trainer(self):
        self.serve("--drain-secs", "3600")
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 200)
        (trainer, ) = self.server.trainers()
        os.kill(trainer, signal.SIGSTOP)  # It will write no checkpoint any more.
        self.server.signal(signal.SIGTERM)
        until(lambda: "draining" in self.server.log(), "the server drains")
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 1)
        until(lambda: not os.path.exists(f"/proc/{trainer}"), "the trainer goes with its server")
        self.serve()
        self.wait(submitted["id"], "succeeded")
