"""The kernel's idle class holds between server and trainer: of a core that requests keep busy training gets next to
nothing, in whatever groups the kernel schedules the two; and it gets on when nobody asks. Judged by shares of CPU time,
so it does not matter how fast the machine is, or what else it does."""
import os
import pathlib
import threading
import unittest

import models
from colocation_test import LONG, ColocationTest
from cpu_limits import CpuLimit
from hostile_load_test import Asker
from raw_http import slow_body
from tandem_server import PATIENCE, cpu_seconds, until

AUTOGROUPS = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")
ASKERS = 4  # So many that something waits whenever a run ends.
SERVED = 2  # Seconds of CPU time that the server has while it is watched.
MOST = 0.15  # Of what the server has, a trainer that stands behind it has less.
EQUAL = 3 * MOST  # One that does not has more.


def autogroup(pid):
    """The session's group that the kernel shares CPU time out to; None where there are none."""
    path = pathlib.Path(f"/proc/{pid}/autogroup")
    return path.read_text() if path.exists() else None


def kernel_classes(pid):
    """Of all threads, also of those that libraries have made since it began."""
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found.add(os.sched_getscheduler(int(task.name)))
        except ProcessLookupError:  # It has just ended.
            pass
    return found


class IdleClass(ColocationTest):
    def setUp(self):
        super().setUp()
        models.place(self.repository, "slow", models.slow())
        # Much to compute for little data: the thread that reads it is of the idle class under every policy, and a trainer
        # that waits for it would stand behind requests anyway.
        models.place(self.repository, "digits", models.mlp(hidden=32768))
        # Server and trainer begin there: a trainer of the idle class would hardly begin on a machine that others keep busy.
        try:
            self.group = CpuLimit(None)
            self.addCleanup(self.group.remove)
        except unittest.SkipTest:
            self.group = None

    def set_autogroups(self, wanted):
        """For the time of the test. Skips it where that cannot be had."""
        now = AUTOGROUPS.read_text().strip() if AUTOGROUPS.exists() else "0"
        if now == wanted:
            return
        try:
            AUTOGROUPS.write_text(wanted)
        except OSError as error:
            self.skipTest(f"sched_autogroup_enabled is {now} here and cannot be changed: {error}")
        self.addCleanup(AUTOGROUPS.write_text, now)

    def serve(self, policy, daemon):
        """On one core, as a daemon or not, in the group of its own."""
        self.state = self.folder / policy
        start = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))] + ["setsid"] * daemon
        enter = self.group.within if self.group else lambda command: command
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 "--colocation",
                                 policy,
                                 within=lambda command: enter(start + command))
        return self.server

    def begin(self):
        submitted = self.submit(**LONG, threads=2, batch_size=256)
        self.wait_step(submitted["id"], 1)
        (trainer, ) = self.server.trainers()
        return submitted["id"], trainer

    def share(self, trainer):
        """The CPU time that the trainer gets while there are always requests, as a share of what the server gets."""
        stop = threading.Event()
        self.addCleanup(stop.set)
        askers = [Asker(self.server.http_port, slow_body(2000), stop) for _ in range(ASKERS)]
        until(lambda: all(asker.answers or asker.broken for asker in askers), "all have been answered once")
        served, trained = self.server.cpu_seconds(), cpu_seconds(trainer)
        until(lambda: self.server.cpu_seconds() - served > SERVED, "the server has computed for a while", 4 * PATIENCE)
        share = (cpu_seconds(trainer) - trained) / (self.server.cpu_seconds() - served)
        stop.set()
        for asker in askers:
            asker.join(PATIENCE)
            self.assertIsNone(asker.broken)
            self.assertEqual({answer.status for answer, _ in asker.answers}, {200})
        return share

    def check_gets_on(self, job_id, trainer):
        """Now that nobody asks."""
        step = self.show(job_id)["progress"]["step"]
        served, trained = self.server.cpu_seconds(), cpu_seconds(trainer)
        until(lambda: cpu_seconds(trainer) - trained > 0.5, "the trainer computes")
        self.assertLess(self.server.cpu_seconds() - served, cpu_seconds(trainer) - trained)
        self.wait_step(job_id, step + 1)

    def check(self, grouped=False, daemon=False):
        """`grouped`: they stay in the control group while they are watched, and else are where this process is."""
        for policy in ("idle", "none"):
            with self.subTest(policy), self.serve(policy, daemon):
                job_id, trainer = self.begin()
                both = (self.server.pid, trainer)
                self.assertEqual(autogroup(trainer), autogroup(self.server.pid))
                if daemon and autogroup("self") is not None:
                    self.assertNotEqual(autogroup(trainer), autogroup("self"))
                if self.group and not grouped:
                    self.group.release(*both)
                share = self.share(trainer)
                if policy == "none":
                    self.assertGreater(share, EQUAL, "or the other case shows nothing")
                    continue
                self.assertLess(share, MOST)
                self.assertEqual(kernel_classes(trainer), {os.SCHED_IDLE})
                self.assertNotIn(os.SCHED_IDLE, kernel_classes(self.server.pid))
                if self.group:
                    self.group.take(*both)
                self.check_gets_on(job_id, trainer)

    def test_training_stands_behind_requests_without_autogroups(self):
        self.set_autogroups("0")
        self.check()

    def test_training_stands_behind_requests_in_the_autogroup_of_a_session(self):
        self.set_autogroups("1")
        self.check()

    def test_training_stands_behind_the_requests_of_a_daemon(self):
        self.set_autogroups("1")
        self.check(daemon=True)

    def test_training_stands_behind_requests_in_one_control_group(self):
        if not self.group:
            self.skipTest("no control group for CPU time can be made")
        self.check(grouped=True)
