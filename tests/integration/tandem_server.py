"""Starts the real server for a test, and tells what became of it."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import disks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TANDEM_BINARY", ROOT / "build/release/bin/tandem")).resolve()
# Sanitizers cost time, memory and address space: limits that a release build keeps are not asked of them.
GRPC_THREADS = {"default-executo", "event_engine", "grpc_global_tim", "resolver-execut", "timer_manager"}
SANITIZED = any(word in str(BINARY) for word in ("asan", "tsan"))
PATIENCE = 60 * (4 if SANITIZED else 1)  # Seconds until something that must happen is given up.


def until(condition, what, seconds=PATIENCE):
    """Waits for `condition()` to be true, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.01)
    return value


def status(pid, field):
    """A field of /proc/PID/status."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].strip()
    raise AssertionError(f"process {pid} has no {field}")


def cpu_seconds(pid):
    """The CPU time that all threads of a process have had."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Answer:
    """An HTTP answer."""
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Server:
    """One `tandem serve` on ports of its own. Use as a context manager, or stop() it."""
    def __init__(self,
                 repository,
                 *flags,
                 open_files=None,
                 memory=None,
                 disk=None,
                 environment=None,
                 wait=True,
                 tls=None,
                 stderr=None,
                 ports_file=None,
                 within=None,
                 http_port=0):
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-server-")
        folder = pathlib.Path(self.folder.name)
        self.log_file = folder / "log"
        self.tls = tls
        self.ports_file = ports_file or folder / "ports"
        command = [
            BINARY, "serve", "--model-repository", repository, "--http-port", http_port, "--grpc-port", "0",
            "--metrics-port", "0", "--ports-file", self.ports_file, *flags
        ]
        settings = {key: value for key, value in os.environ.items() if not key.startswith("TANDEM_")}
        settings.setdefault("TSAN_OPTIONS", "ignore_noninstrumented_modules=1:halt_on_error=1")
        settings["XDG_STATE_HOME"] = str(folder / "state")  # Each server its own: two cannot share one.
        settings.update(environment or {})

        if open_files:  # By a program, not between fork and exec: gRPC's threads in here do not survive a fork.
            command = ["prlimit", f"--nofile={open_files}:{open_files}", *command]
        if memory:
            command = ["prlimit", f"--data={memory}:{memory}", *command]
        if disk:  # A folder, and the options of the tmpfs that is mounted there.
            command = disks.on_disk(command, *disk)
        if within:  # What the command becomes where it is to run.
            command = within(command)
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([str(part) for part in command],
                                            stdout=log,
                                            stderr=stderr or log,
                                            cwd=folder,
                                            env=settings)
        try:
            if wait:
                self.wait_ports()
                until(lambda: self.check_alive() or self._is_ready(), "the server is ready")
        except BaseException:
            self.stop()
            raise

    def wait_ports(self):
        """Waits until the server listens."""
        def ports():
            self.check_alive()
            try:
                return json.loads(self.ports_file.read_text())
            except (OSError, ValueError):
                return None

        found = until(ports, "the server writes its ports")
        self.http_port, self.grpc_port, self.metrics_port = found["http"], found["grpc"], found["metrics"]
        self.http, self.grpc = f"127.0.0.1:{self.http_port}", f"127.0.0.1:{self.grpc_port}"

    def _is_ready(self):
        if self.http_port and not self.tls:
            try:
                return self.call("GET", "/v2/health/ready").status == 200
            except ConnectionError as error:
                # Either it is about to end, and its log says why, or it has closed a connection for no reason.
                time.sleep(1)
                self.check_alive()
                raise AssertionError(f"the connection was lost while the server lives:\n{self.log_tail()}") from error
        return " ready versions=" in self.log()

    # ------------------------------------------------------------------ asking

    def call(self, method, path, body=None, headers=None, port=None, timeout=PATIENCE):
        """One request on a fresh connection."""
        body = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection = http.client.HTTPConnection("127.0.0.1", port or self.http_port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def statistics(self, model, version="1"):
        """The statistics of one version, as REST gives them."""
        return self.call("GET", f"/v2/models/{model}/versions/{version}/stats").json()["model_stats"][0]

    def metric(self, line_start):
        """The value of the one sample whose line begins so; 0 when there is none."""
        for line in self.call("GET", "/metrics").body.decode().splitlines():
            if line.startswith(line_start):
                return float(line.rsplit(" ", 1)[1])
        return 0

    # ------------------------------------------------------------------ the process

    @property
    def pid(self):
        return self.process.pid

    def check_alive(self):
        if (code := self.process.poll()) is not None:
            raise AssertionError(f"the server has gone, exit code {code}; its log ends:\n{self.log_tail()}")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def thread_names(self):
        names = []
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/comm"):
            try:
                names.append(path.read_text().strip())
            except OSError:  # It has just ended.
                pass
        return names

    def cores_of(self, thread):
        """Of each thread whose name begins so, the cores that it may run on."""
        found = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                if (task / "comm").read_text().startswith(thread):
                    found.append(os.sched_getaffinity(int(task.name)))
            except OSError:  # It has just ended.
                pass
        return found

    def threads(self):
        """How many there are without gRPC's own, which come and go as it sees fit."""
        return sum(name not in GRPC_THREADS for name in self.thread_names())

    def wait_for_threads(self, most):
        try:
            until(lambda: self.threads() <= most, "threads end")
        except AssertionError:
            raise AssertionError(f"more than {most} threads: {sorted(self.thread_names())}") from None

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the server has gone")

    def trainers(self):
        """The process ids of the trainers that run."""
        found = []
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/children"):
            try:
                found += [int(pid) for pid in path.read_text().split()]
            except OSError:  # The thread has just ended.
                pass
        return found

    def cpu_seconds(self):
        return cpu_seconds(self.pid)

    def wait_busy(self):
        used = self.cpu_seconds()
        until(lambda: self.cpu_seconds() - used > 0.1, "the server computes")

    def wait_idle(self):
        def idle():
            used = self.cpu_seconds()
            time.sleep(0.3)
            return self.cpu_seconds() - used < 0.1

        until(idle, "the server computes no more")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=PATIENCE):
        """The exit code."""
        return self.process.wait(seconds)

    def stop(self):
        """Ends the server if it still runs; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.last_log = self.log()
        self.folder.cleanup()
        return self.process.returncode

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else self.last_log

    def log_tail(self, lines=12):
        return "\n".join("    " + line[:300] for line in self.log().splitlines()[-lines:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def tandem(*arguments, environment=None, timeout=PATIENCE):
    """Runs the program to its end."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith("TANDEM_")}
    settings.update(environment or {})
    return subprocess.run([str(BINARY), *map(str, arguments)],
                          capture_output=True,
                          text=True,
                          timeout=timeout,
                          env=settings,
                          stdin=subprocess.DEVNULL)


class TandemTest(unittest.TestCase):
    """A test with a temporary folder and servers that are stopped after it. The runner prints their logs on failure."""

    longMessage = True

    def setUp(self):
        self.servers = []
        self.folder = self._folder(self.addCleanup)

    @staticmethod
    def _folder(cleanup):
        folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        cleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def start(self, repository, *flags, **options):
        server = Server(repository, *flags, **options)
        self.servers.append(server)
        self.addCleanup(server.stop)
        return server

    def begin_load(self, *arguments):
        """A run of the load generator that is under way: its first line of progress has come."""
        process = subprocess.Popen([str(BINARY), "loadgen", *map(str, arguments)],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertIn("/s", process.stdout.readline())
        return process

    def logs(self):
        shared = getattr(self, "server", None)
        return [server.log_tail() for server in [*getattr(self, "servers", []), *([shared] if shared else [])]]


class SharedServerTest(TandemTest):
    """All tests of a class ask one server, which must live through them."""

    flags = ()
    server_options = {}

    @classmethod
    def fill(cls, repository):
        """Puts models into the repository before the server starts."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.repository = cls._folder(cls.addClassCleanup)
        cls.fill(cls.repository)
        cls.server = Server(cls.repository, *cls.flags, **cls.server_options)
        cls.addClassCleanup(cls.server.stop)

    def tearDown(self):
        self.server.check_alive()
