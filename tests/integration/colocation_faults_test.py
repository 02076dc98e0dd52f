"""What goes wrong beside training: trainers that mean harm, a machine that stood still, cores that come and go, far too
much load. Requests are answered, and training goes on."""
import os
import pathlib
import re
import signal
import sys
import threading
import time

import models
from colocation_test import LONG, ColocationTest, stopped
from cpu_limits import CpuSet
from hostile_load_test import Asker
from raw_http import Connection, slow_body
from tandem_server import PATIENCE, until

# A trainer in place of the real one. It says that it has begun, tries to take the board away under the server, and then
# writes whatever it likes there, all the time.
HOSTILE_TRAINER = r"""
import ctypes, errno, mmap, os, random
EVENTS, BOARD = 3, 4
os.write(EVENTS, b'{"event":"plan","first_step":0,"total_steps":9,"examples":1,"evaluation_examples":0,"parameters":1}\n')
size = os.fstat(BOARD).st_size

def attempt(name, act):
    try:
        act()
        print(name, "done", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)

attempt("truncate", lambda: os.ftruncate(BOARD, 0))
attempt("shrink", lambda: os.ftruncate(BOARD, size - 1))
attempt("grow", lambda: os.ftruncate(BOARD, size + 4096))
attempt("reopen", lambda: os.truncate("/proc/self/fd/%d" % BOARD, 0))
board = mmap.mmap(BOARD, size)
libc = ctypes.CDLL(None)
PUNCH_HOLE_KEEP_SIZE = 3
chance = random.Random(5)
rounds = 0
while True:
    if libc.fallocate(BOARD, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size)) != 0:
        os._exit(5)
    board[:] = bytes([255]) * size if rounds == 0 else chance.randbytes(size)
    rounds += 1
    if rounds == 20:
        print("scribbled", flush=True)
"""


def spelled(cores):
    """0-3,8: as the log has them."""
    text = ""
    for core in sorted(cores):
        if core - 1 not in cores:
            text += f",{core}"
        elif core + 1 not in cores:
            text += f"-{core}"
    return text[1:]


class HostileTrainer(ColocationTest):
    def test_a_trainer_that_takes_or_overwrites_the_board_hurts_no_request(self):
        program = self.folder / "hostile-trainer"
        program.write_text(f"#!{sys.executable}\n{HOSTILE_TRAINER}")
        program.chmod(0o755)
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "op_gate", "--trainer", program, "--training-hang-secs", "3600")
        job_id = self.submit(**LONG)["id"]
        self.wait(job_id, "running")
        until(lambda: "scribbled" in self.log(job_id), "it has written a lot")
        log = self.log(job_id)
        for attempt in ("truncate", "shrink", "grow", "reopen"):
            self.assertIn(f"{attempt} EPERM", log)
        (trainer, ) = self.server.trainers()
        obeyed = lambda: self.server.metric("tandem_gate_acknowledgement_seconds_count")
        told = [obeyed()]
        # Whatever reads the board reads garbage now, and whatever writes there is overwritten.
        for _ in range(5):
            self.accuracy()
            for path in ("/metrics", "/v2/colocation", f"/v2/train/jobs/{job_id}"):
                self.assertEqual(self.server.call("GET", path).status, 200, path)
            self.assertGreaterEqual(self.held(job_id, "requests"), 0)
            # Where a hole was at the last look, no operators are.
            until(lambda: self.server.call("GET", f"/v2/train/jobs/{job_id}/profile").status == 200, "a profile")
            told.append(obeyed())
        for call in ("pause", "resume"):
            self.call("POST", f"/jobs/{job_id}/{call}")
        told.append(obeyed())
        self.assertEqual(told, sorted(told))
        # Orders that it was given: for each of the requests to wait and to go on, and those two.
        self.assertLess(told[-1], 1000)
        self.assertEqual(self.server.trainers(), [trainer], "it is still at it")
        self.assertEqual(self.kinds(job_id).count("board_overwritten"), 1, "told once, however often it happens")
        self.call("POST", f"/jobs/{job_id}/cancel")
        self.wait(job_id, "cancelled")
        self.server.check_alive()


class Disobedience(ColocationTest):
    def serve(self, *flags):
        # On a machine that others keep busy an idle trainer would never get on.
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "none", *flags)

    def test_a_trainer_whose_orders_are_overwritten_goes_on(self):
        self.serve()
        job_id, trainer = self.begin()
        # The second word of the board is the order; this one is to wait, and nobody has given it.
        with open(f"/proc/{trainer}/fd/4", "r+b", buffering=0) as board:
            board.seek(4)
            board.write((2).to_bytes(4, sys.byteorder))
        until(lambda: "board_overwritten" in self.kinds(job_id), "it is noticed")
        (told, ) = [body for _, kind, body in self.events(job_id) if kind == "board_overwritten"]
        self.assertEqual((told["found"]["orders"], told["found"]["version"]), (2, told["given"]["version"]))
        self.assertNotEqual(told["given"]["orders"], 2)
        until(lambda: "a trainer has overwritten its orders" in self.server.log(), "it is in the log")
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 10)
        self.assertEqual(self.server.trainers(), [trainer])

    def test_a_trainer_that_is_stopped_in_a_pause_is_found_once_the_job_is_resumed(self):
        hang = 5
        self.serve("--training-hang-secs", hang)
        job_id, trainer = self.begin()
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: self.held(job_id, "paused") > 0, "it waits")
        os.kill(trainer, signal.SIGSTOP)
        until(lambda: stopped(trainer), "it is stopped")
        time.sleep(hang + 1)  # Longer than a trainer may do nothing.
        self.assertEqual(self.server.trainers(), [trainer], "it was told to wait, so it does not hang")
        self.call("POST", f"/jobs/{job_id}/resume")
        until(lambda: self.show(job_id)["attempts"] == 2, "another trainer")
        self.assertEqual(self.reasons(job_id), [f"its trainer did nothing for {hang} s and was killed"])
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)


class KilledAtTheGate(ColocationTest):
    """A trainer that goes while it waits at one of its operators."""
    HELD = 32840  # Where on the board a trainer says that it waits.

    def setUp(self):
        super().setUp()
        # Operators that take milliseconds on any machine, and are heavy.
        models.place(self.repository, "digits", models.mlp(hidden=32768))
        models.place(self.repository, "slow", models.slow())

    def serve(self, policy):
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 policy)

    def begin(self):
        """A job that has written a checkpoint, and its trainer."""
        job_id = self.submit(**LONG, batch_size=256, checkpoint={"every_steps": 1, "every_seconds": 0})["id"]
        until(lambda: "checkpoint" in self.kinds(job_id), "a checkpoint")
        (trainer, ) = self.server.trainers()
        return job_id, trainer

    def waits(self, trainer):
        with open(f"/proc/{trainer}/fd/4", "rb", buffering=0) as board:
            board.seek(self.HELD)
            return int.from_bytes(board.read(4), sys.byteorder) == 1

    def check_goes_on(self, job_id):
        until(lambda: self.show(job_id)["attempts"] == 2 and self.kinds(job_id).count("plan") == 2, "another trainer")
        first, second = (body["first_step"] for _, kind, body in self.events(job_id) if kind == "plan")
        self.assertEqual(first, 0)
        self.assertGreater(second, 0, "it goes on from its checkpoint")
        self.wait_step(job_id, second + 3)
        self.server.check_alive()
        self.accuracy()
        (told, ) = self.state_now()["trainers"]
        self.assertEqual(told["state"], "running")

    def test_in_a_pause(self):
        self.serve("none")
        job_id, trainer = self.begin()
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: self.waits(trainer), "it waits")
        os.kill(trainer, signal.SIGKILL)
        until(lambda: "trainer_lost" in self.kinds(job_id), "it is missed")
        self.assertEqual((self.show(job_id)["state"], self.show(job_id)["attempts"]), ("paused", 1))
        until(lambda: not self.state_now()["trainers"], "it is forgotten")
        self.accuracy()
        self.call("POST", f"/jobs/{job_id}/resume")
        self.check_goes_on(job_id)

    def test_while_an_operator_waits_for_requests(self):
        self.serve("op_gate")
        job_id, trainer = self.begin()
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        client.send(slow_body(20_000_000))
        until(lambda: self.held(job_id, "requests") > 0, "operators wait")

        def stopped_while_it_waits():
            os.kill(trainer, signal.SIGSTOP)
            until(lambda: stopped(trainer), "it is stopped")
            if self.waits(trainer):
                return True
            os.kill(trainer, signal.SIGCONT)
            return False

        until(stopped_while_it_waits, "it is stopped while it waits")
        os.kill(trainer, signal.SIGKILL)
        until(lambda: self.show(job_id)["attempts"] == 2, "another trainer")
        until(lambda: self.state_now()["heavy_operators"] == "held", "which would have to wait, too")
        client.close()
        self.check_goes_on(job_id)


class StoodStill(ColocationTest):
    def test_a_server_that_was_frozen_with_its_trainer_loses_neither_job_nor_requests(self):
        """As `docker pause` does it, or a virtual machine that is moved."""
        models.place(self.repository, "slow", models.slow())
        hang = 6
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "none", "--training-hang-secs", hang)
        job_id, trainer = self.begin()
        holder, waiting = Connection(self.server.http_port), Connection(self.server.http_port)
        self.addCleanup(holder.close)
        self.addCleanup(waiting.close)
        holder.send(slow_body(20_000_000))
        self.server.wait_busy()
        waiting.send(slow_body(10, slo_ms=1000 * hang))
        until(lambda: self.server.metric("tandem_queue_depth") == 1, "it waits")
        os.kill(trainer, signal.SIGSTOP)
        time.sleep(0.5)  # The server has seen the last sign of it.
        self.server.signal(signal.SIGSTOP)
        time.sleep(hang + 1)
        # The server is the first to wake: of the trainer it has seen nothing for longer than is allowed.
        self.server.signal(signal.SIGCONT)
        self.assertEqual(waiting.answer().status, 503, "nobody waited for it any more")
        time.sleep(1)
        os.kill(trainer, signal.SIGCONT)
        holder.close()
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 10)
        self.assertEqual(self.server.trainers(), [trainer])
        self.assertEqual(self.show(job_id)["attempts"], 1)
        self.assertRegex(self.server.log(), r"this server or its disk stood still seconds=[0-9.]+")
        met = self.server.metric('tandem_slo_met_total{model="digits"}')
        self.server.call("POST", "/v2/models/digits/infer", {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [0.5] * 64}],
            "parameters": {"slo_ms": 1000 * PATIENCE}
        })
        self.assertEqual(self.server.metric('tandem_slo_met_total{model="digits"}'), met + 1)


class Cores(ColocationTest):
    def keep_to(self, cores, *processes):
        """As when others go offline, or the group's cpuset is changed: it holds for every thread."""
        for process in processes:
            for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                try:
                    os.sched_setaffinity(int(task.name), cores)
                except ProcessLookupError:  # It has just ended.
                    pass

    def test_training_is_held_and_let_on_when_the_cores_change(self):
        cores = os.sched_getaffinity(0)
        if len(cores) < 2:
            self.skipTest("there is one core only")
        models.place(self.repository, "slow", models.slow())
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "pause")
        job_id, trainer = self.begin()
        for now in ({min(cores)}, {max(cores)}, cores):
            with self.subTest(cores=now):
                before = self.state_now()["cores"]
                self.keep_to(now, self.server.pid, trainer)
                self.assertEqual(self.state_now()["cores"], sorted(now))
                self.assertEqual(self.state_now()["trainers"][0]["cores"], sorted(now))
                change = f" before={spelled(before)} now={spelled(now)}\n"
                for line in ("cores of the server changed", f"cores of a trainer changed job={job_id}"):
                    until(lambda: line + change in self.server.log(), line)
                with Connection(self.server.http_port) as client:
                    client.send(slow_body(20_000_000))
                    until(lambda: stopped(trainer), "it stands still")
                    state = self.state_now()
                    self.assertEqual(state["held_for"], "requests")
                    (told, ) = state["trainers"]
                    self.assertEqual((told["job"], told["state"], told["held_for"]), (job_id, "held", "requests"))
                until(lambda: not stopped(trainer), "it goes on")
                until(lambda: self.state_now()["trainers"][0]["state"] == "running", "which is told")
                self.accuracy()
                self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        self.assertEqual(self.show(job_id)["attempts"], 1)

    def test_a_set_of_cores_may_shrink_and_grow_while_training(self):
        cores = os.sched_getaffinity(0)
        if len(cores) < 2:
            self.skipTest("there is one core only")
        group = CpuSet(cores)
        self.addCleanup(group.remove)
        # The cores are divided: those for training are the ones that go.
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 "--colocation",
                                 "partition",
                                 within=group.within)
        job_id, trainer = self.begin()
        group.set({min(cores)})
        until(lambda: os.sched_getaffinity(trainer) == {min(cores)}, "it has moved")
        self.assertEqual(self.state_now()["trainers"][0]["cores"], [min(cores)])
        until(lambda: re.search(rf"cores of a trainer changed job={job_id} .* now={min(cores)}\n", self.server.log()),
              "the log says so")
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        for attempt in (2, 3):
            (trainer, ) = self.server.trainers()
            os.kill(trainer, signal.SIGKILL)
            until(lambda: self.show(job_id)["attempts"] == attempt and self.server.trainers(), "another trainer")
            self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        self.assertEqual(self.server.log().count("trainers cannot be kept to the cores for training"), 1, "told once")
        self.accuracy()
        group.set(cores)
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        self.accuracy()


class Overload(ColocationTest):
    ASKERS, QUEUE = 80, 8  # As many under way at once as ten times those that may wait.

    def test_ten_times_the_load_is_met_or_refused_and_training_goes_on(self):
        models.place(self.repository, "slow", models.slow())
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "pause", "--max-queue", self.QUEUE)
        job_id, trainer = self.begin()
        counters = ("met", "missed", "rejected")
        counted = lambda: [self.server.metric(f'tandem_slo_{name}_total{{model="slow"}}') for name in counters]
        caused = lambda: sum(
            self.server.metric(f'tandem_slo_missed_by_cause_total{{cause="{cause}",model="slow"}}')
            for cause in ("training", "other", "unknown"))
        stop = threading.Event()
        self.addCleanup(stop.set)
        # Half of them have no time at all, so that some are late however fast the machine is.
        askers = [
            Asker(self.server.http_port, slow_body(500, slo_ms=slo), stop, 0.01) for slo in (0.001, 1000.0)
            for _ in range(self.ASKERS // 2)
        ]
        until(lambda: stopped(trainer), "training stands still")
        resident, depths, end = self.server.resident_bytes(), [], time.monotonic() + 5
        while time.monotonic() < end:
            depths.append(self.server.metric("tandem_queue_depth"))
            self.assertEqual(self.server.call("GET", "/v2/health/live").status, 200)
            time.sleep(0.1)
        grown = self.server.resident_bytes() - resident
        stop.set()
        for asker in askers:
            asker.join(PATIENCE)
            self.assertIsNone(asker.broken)
        answers = [answer for asker in askers for answer, _ in asker.answers]
        self.assertEqual({answer.status for answer in answers}, {200, 503})
        for answer in answers:
            if answer.status == 503:
                self.assertRegex(answer.error, "queue|deadline")
        self.assertLessEqual(max(depths), self.QUEUE)
        self.assertLess(grown, 256 << 20)
        met, missed, rejected = counted()
        self.assertEqual(met + missed + rejected, len(answers), "each counts once")
        self.assertEqual(caused(), missed + rejected, "each miss has a cause")

        until(lambda: not stopped(trainer), "training goes on")
        with Connection(self.server.http_port) as client:
            self.assertEqual(client.send(slow_body(10, slo_ms=1000 * PATIENCE)).answer().status, 200)
        self.assertEqual(counted()[0], met + 1)
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        self.assertEqual(self.show(job_id)["attempts"], 1)
