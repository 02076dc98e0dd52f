"""Training behind requests: trainers are stopped and let on as the policy says, and nothing else changes."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import models
from cpu_limits import CpuLimit, apart
from raw_http import Connection, slow_body
from tandem_server import BINARY, PATIENCE, cpu_seconds, until
from training_jobs import STEADY, TrainingTest

POLICIES = ("tandem", "none", "nice", "idle", "pause", "partition", "time_slice", "op_gate")
LONG = {"epochs": None, "steps": 100_000_000, "evaluation": None}


def stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def idle(pid):
    used = cpu_seconds(pid)
    time.sleep(0.3)
    return cpu_seconds(pid) - used < 0.05


def forbidding(calls):
    """What a command becomes to which the kernel refuses these system calls ("kill,pidfd_open")."""
    forbid = [sys.executable, str(pathlib.Path(__file__).parent / "forbid_call.py"), calls]
    return lambda command: forbid + command


class ColocationTest(TrainingTest):
    def state_now(self):
        answer = self.server.call("GET", "/v2/colocation")
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def held(self, job_id, reason):
        return self.server.metric(f'tandem_training_held_seconds_total{{job="{job_id}",reason="{reason}"}}')

    def reasons(self, job_id):
        """Why its state changed, as far as that was said."""
        return [body["reason"] for _, kind, body in self.events(job_id) if kind == "state" and body.get("reason")]

    def begin(self):
        """A job without end that has made steps, and its trainer."""
        submitted = self.submit(**LONG)
        self.wait_step(submitted["id"], 1)
        (trainer, ) = self.server.trainers()
        return submitted["id"], trainer


class Policies(ColocationTest):
    def test_an_unknown_policy_is_refused_with_those_that_are_known(self):
        done = subprocess.run([BINARY, "serve", "--model-repository", self.repository, "--colocation", "herald"],
                              capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 2)
        for name in ("--colocation", "herald", *POLICIES):
            self.assertIn(name, done.stderr)

    def test_each_policy_trains_and_says_what_it_does(self):
        for policy in POLICIES:
            with self.subTest(policy), self.serve(policy):
                self.assertEqual(self.state_now()["policy"], policy)
                self.assertEqual(self.state_now()["training"], "none")
                submitted = self.submit(steps=20, epochs=None, evaluation=None)
                self.wait(submitted["id"], "succeeded")

    def test_the_kernel_ranks_trainers_as_the_policy_says(self):
        def ranks(pid):
            """(class, nice) of each thread, also of those that libraries make."""
            found = {}
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                try:
                    fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                except OSError:  # It has just ended.
                    continue
                found[int(task.name)] = int(fields[38]), int(fields[16])
            return found

        idle = 5
        for policy in POLICIES:
            with self.subTest(policy), self.serve(policy):
                _, trainer = self.begin()
                threads = ranks(trainer)
                self.assertGreater(len(threads), 1)
                if policy in ("tandem", "idle"):
                    self.assertEqual({kernel_class for kernel_class, _ in threads.values()}, {idle})
                elif policy == "nice":
                    self.assertEqual({nice for _, nice in threads.values()}, {19})
                else:
                    self.assertEqual(threads[trainer], ranks(self.server.pid)[self.server.pid])

    def serve(self, policy):
        """Each with a state of its own, so that it has no job of another; apart from others on a machine that they keep
        busy, where an idle trainer would never get on."""
        self.state = self.folder / policy
        within, remove = apart()
        self.addCleanup(remove)
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 "--colocation",
                                 policy,
                                 within=within)
        return self.server


class Pause(ColocationTest):
    def setUp(self):
        super().setUp()
        models.place(self.repository, "slow", models.slow())

    def serve(self, *flags):
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "pause", *flags)

    def request(self):
        """A request that runs for minutes, unless its client goes."""
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        client.send(slow_body(20_000_000))
        return client

    def test_a_trainer_stands_still_while_a_request_is_under_way(self):
        self.serve("--training-hang-secs", "5")
        job_id, trainer = self.begin()
        client = self.request()
        until(lambda: stopped(trainer), "the trainer stands still")
        state = self.state_now()
        self.assertEqual((state["training"], state["held_for"], state["requests_under_way"]), ("held", "requests", 1))
        (told, ) = state["trainers"]
        self.assertEqual((told["job"], told["state"], told["held_for"]), (job_id, "held", "requests"))
        step = self.show(job_id)["progress"]["step"]
        time.sleep(6)  # Longer than a trainer may do nothing.
        self.assertEqual(self.server.trainers(), [trainer], "it was told to wait, so it does not hang")
        client.close()
        self.wait_step(job_id, step + 10)
        self.assertGreater(self.held(job_id, "requests"), 5.5)
        self.assertEqual(self.held(job_id, "quota"), 0)

    def test_a_server_that_is_told_to_stop_lets_its_trainer_write_a_checkpoint(self):
        self.serve("--drain-secs", "120")
        job_id, trainer = self.begin()
        client = self.request()
        until(lambda: stopped(trainer), "the trainer stands still")
        self.server.process.terminate()
        until(lambda: not self.server.trainers(), "the trainer has ended")
        client.close()
        self.server.process.wait(PATIENCE)
        self.serve()
        record = self.wait(job_id, "running")
        self.assertIn("interrupted; goes on from its checkpoint", str(self.events(job_id)), record)

    def test_a_trainer_that_is_killed_while_it_stands_still_is_followed_by_another(self):
        self.serve()
        job_id, trainer = self.begin()
        client = self.request()
        until(lambda: stopped(trainer), "the trainer stands still")
        subprocess.run(["kill", "-9", str(trainer)], check=True)
        until(lambda: self.show(job_id)["attempts"] == 2, "another trainer")
        self.assertEqual(self.reasons(job_id),
                         ["its trainer ended: it was killed; when nobody did that, memory had run out"])
        client.close()
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)

    def test_a_server_that_is_killed_leaves_no_trainer_behind_that_stands_still(self):
        self.serve()
        _, trainer = self.begin()
        self.request()
        until(lambda: stopped(trainer), "the trainer stands still")
        self.server.process.kill()
        self.server.wait()
        until(lambda: not pathlib.Path(f"/proc/{trainer}").exists(), "the trainer goes with its server")


class Forbidden(ColocationTest):
    """What a container's policy may not permit."""
    def serve(self, calls, *flags):
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 *flags,
                                 within=forbidding(calls))

    def test_a_trainer_that_cannot_be_idle_stands_still_while_a_request_is_under_way(self):
        models.place(self.repository, "slow", models.slow())
        self.serve("sched_setscheduler")
        job_id, trainer = self.begin()
        self.assertFalse(self.state_now()["trainers_yield"])
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        client.send(slow_body(20_000_000))
        until(lambda: stopped(trainer), "the trainer stands still")
        self.assertEqual(self.state_now()["held_for"], "requests")
        client.close()
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        subprocess.run(["kill", "-9", str(trainer)], check=True)
        until(lambda: self.show(job_id)["attempts"] == 2 and self.server.trainers(), "another trainer")
        self.assertEqual(self.server.log().count("cannot be put into the kernel's idle class"), 1, "told once")

    def test_a_trainer_that_cannot_be_stopped_through_a_descriptor_is_stopped_by_its_number(self):
        models.place(self.repository, "slow", models.slow())
        for calls in ("pidfd_open", "pidfd_send_signal"):
            with self.subTest(calls):
                self.state = self.folder / calls
                self.serve(calls, "--colocation", "pause")
                job_id, trainer = self.begin()
                for attempt in (1, 2):
                    with Connection(self.server.http_port) as client:
                        client.send(slow_body(20_000_000))
                        until(lambda: stopped(trainer), "the trainer stands still")
                        (told, ) = self.state_now()["trainers"]
                        self.assertEqual((told["state"], told["held_by"]), ("held", "pid"))
                    self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
                    if attempt == 1:
                        os.kill(trainer, signal.SIGKILL)
                        until(lambda: self.show(job_id)["attempts"] == 2 and self.server.trainers(), "another trainer")
                        (trainer, ) = self.server.trainers()
                self.assertEqual(self.server.log().count("cannot be stopped through descriptors"), 1, "told once")
                self.server.stop()

    def test_a_trainer_that_may_not_be_signalled_waits_at_its_next_operator(self):
        models.place(self.repository, "slow", models.slow())
        self.serve("pidfd_open,kill", "--colocation", "pause")
        job_id, trainer = self.begin()
        with Connection(self.server.http_port) as client:
            client.send(slow_body(20_000_000))
            until(lambda: self.state_now()["trainers"][0]["permit"] == "hold", "it is to wait")
            (told, ) = self.state_now()["trainers"]
            self.assertEqual((told["state"], told["held_for"], told["held_by"]), ("held", "requests", "board"))
            until(lambda: idle(trainer), "it waits")
            step = self.show(job_id)["progress"]["step"]
            time.sleep(1)
            self.assertEqual(self.show(job_id)["progress"]["step"], step)
            self.assertFalse(stopped(trainer))
        self.wait_step(job_id, step + 5)
        self.assertEqual(self.server.log().count("trainers may not be signalled"), 1)
        self.call("POST", f"/jobs/{job_id}/cancel")
        self.wait(job_id, "cancelled")
        until(lambda: not self.server.trainers(), "it has ended: who cannot be killed is asked")

    def test_where_cores_cannot_be_divided_trainers_are_of_the_idle_class(self):
        cores = os.sched_getaffinity(0)
        if len(cores) < 2:
            self.skipTest("there is one core only")
        self.serve("sched_setaffinity", "--colocation", "partition")
        job_id, trainer = self.begin()
        self.assertEqual(os.sched_getaffinity(trainer), cores)
        self.assertEqual(os.sched_getaffinity(self.server.pid), cores)
        self.assertEqual(os.sched_getscheduler(trainer), os.SCHED_IDLE)
        self.assertEqual(self.state_now()["policy"], "idle", "which is what it comes to")
        self.accuracy()
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
        self.assertEqual(self.server.log().count("the cores cannot be divided"), 1, "told once")


    def test_threads_of_runs_that_cannot_be_kept_to_a_core_go_where_the_kernel_puts_them(self):
        cores = os.sched_getaffinity(0)
        models.place(self.repository, "slow", models.slow())
        self.serve("sched_setaffinity")
        workers = self.server.cores_of("worker-")
        if len(cores) < 2 or len(workers) != len(cores):
            self.skipTest("runs have no thread for each core here")
        for _ in range(3):
            with Connection(self.server.http_port) as client:
                self.assertEqual(client.send(slow_body(100)).answer().status, 200)
        until(lambda: "threads of runs cannot be kept to a core each" in self.server.log(), "the log says so")
        self.accuracy()
        self.assertEqual(self.server.log().count("threads of runs cannot be kept to a core each"), 1, "told once")
        for thread in ("worker-", "ort-pool"):
            self.assertTrue(all(of == cores for of in self.server.cores_of(thread)), thread)


class Told(ColocationTest):
    def test_metrics_tell_how_soon_trainers_obey_and_what_their_operators_are_taken_for(self):
        models.place(self.repository, "digits", models.mlp(hidden=32768))  # Whose operators take milliseconds anywhere.
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation",
                                 "none")
        heavy = lambda: self.server.metric('tandem_op_class_total{class="heavy"}')
        obeyed = lambda: self.server.metric("tandem_gate_acknowledgement_seconds_count")
        self.assertIn("tandem_gate_acknowledgement_seconds_count 0\n",
                      self.server.call("GET", "/metrics").body.decode())
        job_id = self.submit(**LONG, batch_size=256)["id"]
        until(self.server.trainers, "a trainer")
        # Before its operators have run nothing is known of them that would make them heavy.
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: self.server.call("GET", f"/v2/train/jobs/{job_id}/profile").status == 200,
              "it was looked at its operators")
        self.assertEqual(heavy(), 0)
        until(lambda: obeyed() == 1, "it waits, as it was told")
        self.call("POST", f"/jobs/{job_id}/resume")
        until(lambda: obeyed() == 2, "and goes on")
        until(lambda: heavy() > 0, "they have run")
        lines = self.server.call("GET", "/metrics").body.decode().splitlines()
        buckets = [
            float(line.rsplit(" ", 1)[1]) for line in lines
            if line.startswith("tandem_gate_acknowledgement_seconds_bucket")
        ]
        self.assertEqual((buckets, buckets[-1]), (sorted(buckets), 2))
        self.assertGreater(self.server.metric("tandem_gate_acknowledgement_seconds_sum"), 0)


class Quota(ColocationTest):
    def setUp(self):
        super().setUp()
        self.limit = CpuLimit(0.8)
        self.addCleanup(self.limit.remove)

    def serve(self, *flags, within=None):
        self.server = self.start(self.repository,
                                 "--state",
                                 self.state,
                                 "--data-root",
                                 self.data,
                                 *flags,
                                 within=within or self.limit.within)

    def limit_now(self):
        return self.limit.find(self.state_now()["cpu_limits"])

    def wait_told(self, what, before, now):
        line = f"CPU limit {what} group={self.limit.folders[0]} before={before} now={now}\n"
        until(lambda: line in self.server.log(), f"the log says: {line}")

    def test_a_limit_may_be_set_while_training(self):
        self.limit.set(None)
        self.serve()
        job_id, _ = self.begin()
        self.assertIsNone(self.limit_now())
        self.limit.set(0.8)
        until(lambda: self.held(job_id, "quota") > 0.2, "the trainer is held")
        self.wait_told("set", "none", "0.8")

    def test_training_is_paced_by_a_cpu_limit_and_ends_as_it_would_without(self):
        self.serve("--colocation", "none")
        undisturbed = self.undisturbed()
        self.server.stop()
        self.serve()
        submitted = self.submit(**STEADY)
        self.wait_step(submitted["id"], 1)
        limit = self.limit_now()
        self.assertEqual((limit["cores"], limit["period_ms"]), (0.8, 100))
        until(lambda: self.held(submitted["id"], "quota") > 0.2, "the trainer is held")
        self.accuracy()
        self.wait(submitted["id"], "succeeded")
        self.assertEqual(self.result(submitted["id"]), undisturbed, "the same bits")

    def test_training_is_paced_by_whatever_holds_it(self):
        for calls, held_by in (("pidfd_open", "pid"), ("pidfd_open,kill", "board")):
            with self.subTest(calls):
                self.state = self.folder / held_by
                self.serve(within=lambda command: self.limit.within(forbidding(calls)(command)))
                job_id, _ = self.begin()
                until(lambda: self.held(job_id, "quota") > 0.2, "the trainer is held")
                self.assertEqual(self.state_now()["trainers"][0]["held_by"], held_by)
                self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
                self.accuracy()
                self.server.stop()

    def test_training_stands_still_for_a_request_that_needs_what_is_left(self):
        models.place(self.repository, "slow", models.slow())
        self.serve()
        job_id, trainer = self.begin()
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        client.send(slow_body(20_000_000))
        until(lambda: stopped(trainer), "the trainer stands still")
        client.close()
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)

    def test_a_limit_may_be_changed_and_lifted_while_training(self):
        self.serve()
        job_id, _ = self.begin()
        until(lambda: self.held(job_id, "quota") > 0.2, "the trainer is held")
        self.limit.set(0.5)
        until(lambda: self.limit_now()["cores"] == 0.5, "the new limit is seen")
        self.wait_told("changed", "0.8", "0.5")
        self.limit.set(None)
        until(lambda: not self.limit_now(), "that it was lifted is seen")
        self.wait_told("lifted", "0.5", "none")
        time.sleep(0.5)  # What was held before may be counted a little later.
        before = self.held(job_id, "quota")
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 20)
        self.assertEqual(self.held(job_id, "quota"), before)
        self.limit.set(0.8)
        until(lambda: self.held(job_id, "quota") > before + 0.2, "the trainer is held again")

    def test_a_job_is_paused_and_resumed_as_ever(self):
        self.serve()
        job_id, trainer = self.begin()
        until(lambda: self.held(job_id, "quota") > 0.2, "the trainer is held")
        self.call("POST", f"/jobs/{job_id}/pause")
        until(lambda: self.held(job_id, "paused") > 0.2, "it waits because a person said so")
        time.sleep(0.5)  # What was held before may be counted a little later.
        before = self.held(job_id, "quota")
        time.sleep(0.5)
        self.assertFalse(stopped(trainer))
        (told, ) = self.state_now()["trainers"]
        self.assertEqual((told["state"], told["held_for"], told["permit"]), ("paused", "paused", "hold"))
        self.assertEqual(self.held(job_id, "quota"), before)
        self.call("POST", f"/jobs/{job_id}/resume")
        until(lambda: self.held(job_id, "quota") > before, "the trainer is paced again")
        self.wait_step(job_id, self.show(job_id)["progress"]["step"] + 5)
