"""What happens to training jobs when disks are full, read-only or damaged, and when data changes under them."""
import os
import re
import signal
import subprocess
import unittest

import numpy as np

import disks
from tandem_server import until
from training_jobs import STEADY, TrainingTest, examples, job

PAGE = os.sysconf("SC_PAGESIZE")


class DiskTest(TrainingTest):
    def wait_checkpoint(self, job_id):
        until(lambda: self.call("GET", f"/jobs/{job_id}/checkpoints")["checkpoints"], "a checkpoint is written")


@unittest.skipUnless(disks.can_mount(), "this system lets nobody mount a small disk")
class FullDisk(DiskTest):
    def serve_on_disk(self, folder, options, *flags, **settings):
        folder.mkdir(parents=True, exist_ok=True)
        return self.serve(*flags, disk=(folder, options), **settings)

    def result_file(self, job_id):
        return disks.seen_by(self.server, super().result_file(job_id))

    def test_a_job_without_room_is_tried_again_then_fails_and_keeps_its_last_checkpoint(self):
        folder = self.state / "jobs"
        self.serve_on_disk(folder, "size=2m", "--training-attempts", "2")
        submitted = self.submit(**STEADY)
        self.wait_checkpoint(submitted["id"])
        self.call("POST", f"/jobs/{submitted['id']}/pause")
        filler = disks.seen_by(self.server, folder / "filler")
        disks.fill(filler, left=PAGE)  # For the log.
        self.call("POST", f"/jobs/{submitted['id']}/resume")
        done = self.wait(submitted["id"], "failed")
        self.assertIn("No space left on device", done["reason"])
        self.assertIn("(2 attempts)", done["reason"])
        self.assertRegex(done["reason"], r"; the end of its log: (?s:.*)Z failed: .*No space left on device")
        retries = [body for _, kind, body in self.events(done["id"]) if kind == "state" and body["action"] == "retry"]
        self.assertEqual(len(retries), 1)
        self.assertIn("No space left on device", retries[0]["reason"])
        kept = self.call("GET", f"/jobs/{done['id']}/checkpoints")["checkpoints"]
        self.assertTrue(kept[0]["good"])
        file = disks.seen_by(self.server, folder / str(done["id"]) / kept[0]["file"])
        self.assertEqual(file.stat().st_size, kept[0]["bytes"])
        self.accuracy()
        filler.unlink()
        self.wait(self.submit()["id"], "succeeded")

    def test_a_job_goes_on_to_the_same_result_once_there_is_room(self):
        self.serve_on_disk(self.state, "size=16m", "--training-attempts", "1000")
        plain = self.submit(**STEADY)
        self.wait(plain["id"], "succeeded")
        submitted = self.submit(**STEADY)
        self.wait_checkpoint(submitted["id"])
        (trainer, ) = until(self.server.trainers, "a trainer runs")
        os.kill(trainer, signal.SIGSTOP)
        filler = disks.seen_by(self.server, self.state / "filler")
        disks.fill(filler)
        os.kill(trainer, signal.SIGCONT)
        until(lambda: "a checkpoint could not be written" in self.server.log(), "a checkpoint finds no room")
        self.accuracy()
        filler.unlink()
        self.wait(submitted["id"], "succeeded")
        self.assertEqual(self.result(submitted["id"]), self.result(plain["id"]))

    def test_a_read_only_state_is_an_error_at_the_start(self):
        self.state.mkdir()
        server = self.start(self.repository, "--state", self.state, disk=(self.state, "ro"), wait=False)
        self.assertEqual(server.wait(), 2)
        self.assertIn("Read-only file system", server.log())
        self.assertIn(str(self.state), server.log())

    def test_a_read_only_state_that_nobody_named_turns_training_off(self):
        self.state.mkdir()
        self.server = self.start(self.repository, disk=(self.state, "ro"), environment={"XDG_STATE_HOME": str(self.state)})
        self.assertIn("Read-only file system", self.call("POST", "/jobs", job(), status=503)["error"])
        self.accuracy()


class State(DiskTest):
    def test_a_file_may_not_grow_and_the_next_trainer_goes_on(self):
        self.serve()
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait_checkpoint(submitted["id"])
        (trainer, ) = self.server.trainers()
        subprocess.run(["prlimit", f"--pid={trainer}", "--fsize=1000:1000"], check=True)
        done = self.wait(submitted["id"], "succeeded")
        self.assertGreaterEqual(done["attempts"], 2)
        self.assertEqual(self.result(done["id"]), expected)
        reasons = [body.get("reason", body.get("problem")) for _, _, body in self.events(done["id"])]
        self.assertTrue(any(reason and "File too large" in reason for reason in reasons), reasons)

    def test_a_state_that_is_a_file_is_an_error_or_turns_training_off(self):
        self.state.write_text("a file")
        server = self.start(self.repository, "--state", self.state, wait=False)
        self.assertEqual(server.wait(), 2)
        self.assertIn(f"--state '{self.state}' cannot be made", server.log())
        self.server = self.start(self.repository, environment={"XDG_STATE_HOME": str(self.state)})
        self.assertIn("training is off", self.call("POST", "/jobs", job(), status=503)["error"])
        self.accuracy()

    def test_a_damaged_database_is_an_error_that_says_what_to_do(self):
        self.serve()
        self.wait(self.submit()["id"], "succeeded")
        self.server.stop()
        database = self.state / "jobs.db"
        database.write_bytes(b"\xa5" * 100 + database.read_bytes()[100:])
        server = self.start(self.repository, "--state", self.state, wait=False)
        self.assertEqual(server.wait(), 1)
        self.assertIn(f"the job database '{database}' is damaged", server.log())
        self.assertIn(f"move '{database}' away", server.log())
        for file in self.state.glob("jobs.db*"):
            file.rename(self.folder / file.name)
        self.serve()
        self.assertEqual(self.call("GET", "/jobs")["jobs"], [])
        self.wait(self.submit()["id"], "succeeded")


class Data(DiskTest):
    ENDLESS = {"epochs": None, "steps": 10_000_000, "evaluation": None}

    def fails_when_shortened(self, file, **fields):
        submitted = self.submit(**self.ENDLESS, **fields)
        self.wait_step(submitted["id"], 10)
        os.truncate(file, file.stat().st_size // 2)
        done = self.wait(submitted["id"], "failed")
        self.assertIn(f"'{file.name}' changed while it was read", done["reason"])
        self.assertEqual(done["attempts"], 1)

    def test_data_that_is_shortened_fails_the_job_and_names_the_file(self):
        self.serve()
        x, y = examples(500, seed=1)
        np.savetxt(self.data / "train.csv",
                   np.column_stack([x, y]),
                   delimiter=",",
                   header=",".join([f"x{i}" for i in range(64)] + ["y"]),
                   comments="",
                   fmt=["%g"] * 64 + ["%d"])
        self.fails_when_shortened(self.data / "train.csv", data={"path": "train.csv"})
        self.fails_when_shortened(self.data / "train.npz")
        self.accuracy()

    def test_data_that_is_replaced_or_deleted_is_read_as_it_was(self):
        self.serve()
        expected = self.undisturbed()
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 1)
        x, y = examples(10, seed=9)
        np.savez(self.data / "other.npz", x=x, y=y)
        os.replace(self.data / "other.npz", self.data / "train.npz")
        self.wait_step(submitted["id"], 2)
        os.unlink(self.data / "train.npz")
        done = self.wait(submitted["id"], "succeeded")
        self.assertEqual(done["attempts"], 1)
        self.assertEqual(self.result(done["id"]), expected)

    def test_a_loss_that_is_no_number_stops_the_job_and_keeps_the_checkpoint_before(self):
        x, y = examples(1000, seed=1)
        x[700] = 3e38
        np.savez(self.data / "train.npz", x=x, y=y)
        self.serve()
        submitted = self.submit(evaluation=None, epochs=1, checkpoint={"every_steps": 1, "every_seconds": 0, "keep": 2})
        done = self.wait(submitted["id"], "failed")
        self.assertRegex(done["reason"], r"the loss is -?nan in step \d+")
        step = int(re.search(r"in step (\d+)", done["reason"])[1]) - 1
        self.assertIn("or the data holds values", done["reason"])
        self.assertEqual(done["attempts"], 1)
        kept = self.call("GET", f"/jobs/{done['id']}/checkpoints")["checkpoints"]
        self.assertEqual((kept[0]["step"], kept[0]["good"]), (step, True))
