"""Starting, stopping, changing and watching a server."""
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import numpy as np

import models
from onnx_file import Graph
from raw_http import GOOD_BODY, Connection, request, slow_body
from tandem_server import BINARY, PATIENCE, Server, TandemTest, tandem, until

FOREVER = 20_000_000  # Steps of the slow model: minutes.


class OperationsTest(TandemTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "models"
        models.place(self.repository, "bias", models.bias())

    def ask(self, server, value=1, model="bias"):
        """The model adds `value`."""
        with Connection(server.http_port) as connection:
            answer = connection.send(request(GOOD_BODY, f"/v2/models/{model}/infer")).answer()
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()["outputs"][0]["data"][0], 1 + value)

    def ready(self, server, model, version=None):
        return server.call("GET", f"/v2/models/{model}{f'/versions/{version}' if version else ''}/ready").status == 200

    def versions(self, server, model="bias"):
        return server.call("GET", f"/v2/models/{model}").json()["versions"]


class Stopping(OperationsTest):
    def setUp(self):
        super().setUp()
        models.place(self.repository, "slow", models.slow())

    def busy_server(self, steps, *flags):
        server = self.start(self.repository, *flags)
        connection = Connection(server.http_port).send(slow_body(steps))
        self.addCleanup(connection.close)
        server.wait_busy()
        return server, connection

    def test_sigterm_and_sigint_end_an_idle_server(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start(self.repository)
            self.ask(server)
            with Connection(server.http_port):  # A connection that says nothing does not hold it up.
                server.signal(number)
                begun = time.monotonic()
                self.assertEqual(server.wait(), 0)
                self.assertLess(time.monotonic() - begun, 10)
            self.assertIn("stopped", server.log())

    def test_sigterm_lets_requests_finish_and_takes_no_new_ones(self):
        server, running = self.busy_server(40_000)
        waiting = Connection(server.http_port).send(slow_body(10))
        until(lambda: server.metric("tandem_queue_depth") == 1, "one waits")
        server.signal(signal.SIGTERM)

        def refused():
            try:
                with Connection(server.http_port) as connection:
                    answer = connection.send(request(GOOD_BODY)).answer()
            except ConnectionError:
                return True  # All were done before this came.
            if answer is None:
                return True
            if answer.status == 503:
                self.assertRegex(answer.headers["Retry-After"], r"^\d+$")
                self.assertIn("error", answer.json())
                return True
            return False

        until(refused, "new requests are refused")
        self.assertEqual(running.answer().status, 200)
        self.assertEqual(waiting.answer().status, 200)
        self.assertEqual(server.wait(), 0)

    def test_readiness_goes_false_while_draining(self):
        server, running = self.busy_server(FOREVER, "--drain-secs", "60")
        server.signal(signal.SIGTERM)
        until(lambda: server.call("GET", "/v2/health/ready").status == 503, "readiness goes false")
        self.assertEqual(server.call("GET", "/v2/health/live").status, 200)
        running.close()
        self.assertEqual(server.wait(), 0)

    def test_the_drain_has_an_end(self):
        server, running = self.busy_server(FOREVER, "--drain-secs", "0.5")
        begun = time.monotonic()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 1, "work was lost")
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIn("drain time is over", server.log())
        answer = running.answer()
        self.assertTrue(answer is None or answer.status in (499, 503), answer)

    def test_a_second_signal_ends_it_at_once(self):
        server, _ = self.busy_server(FOREVER)
        server.signal(signal.SIGTERM)
        until(lambda: "draining" in server.log(), "the drain begins")
        server.signal(signal.SIGTERM)
        begun = time.monotonic()
        self.assertEqual(server.wait(), 1)
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_log_that_nobody_reads_stops_nothing(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        server = self.start(self.repository, "--log-level", "debug", "--log-format", "json", stderr=writer)
        os.close(writer)
        with Connection(server.http_port) as connection:
            for _ in range(200):
                self.assertEqual(connection.send(request(GOOD_BODY)).answer().status, 200)
        self.assertEqual(server.metric("tandem_log_lines_dropped_total"), 0)
        server.signal(signal.SIGTERM)
        with open(reader, "rb", closefd=False) as log:  # Whoever reads it in the end misses nothing.
            lines = [json.loads(line) for line in log.read().splitlines()]
        self.assertEqual(server.wait(), 0)
        self.assertEqual(sum(line["message"] == "request" for line in lines), 200)
        self.assertEqual(lines[-1]["message"], "stopped")
        self.assertEqual([line["time"] for line in lines], sorted(line["time"] for line in lines))

    def test_signals_are_heard_while_nobody_reads_the_log(self):
        def start():
            reader, writer = os.pipe()
            self.addCleanup(os.close, reader)
            os.set_blocking(writer, False)
            while True:
                try:
                    os.write(writer, b"x" * 4096)
                except BlockingIOError:
                    break
            os.set_blocking(writer, True)
            server = self.start(self.repository, stderr=writer)
            os.close(writer)
            return server

        server = start()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        server = start()
        running = Connection(server.http_port).send(slow_body(FOREVER))
        self.addCleanup(running.close)
        server.wait_busy()
        server.signal(signal.SIGTERM)
        until(lambda: server.call("GET", "/v2/health/ready").status == 503, "the drain begins")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 1)  # The drain would take 30 s.

    def test_signals_are_heard_while_the_server_starts(self):
        pipe = self.folder / "ports"
        os.mkfifo(pipe)  # Whoever opens it to write waits for a reader.
        for times, code in ((1, 0), (2, 1)):
            server = self.start(self.repository, ports_file=pipe, wait=False)
            until(lambda: "ONNX Runtime loaded" in server.log(), "it starts")
            server.signal(signal.SIGTERM)
            until(lambda: "draining" in server.log(), "it has heard that")
            for _ in range(times - 1):
                server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(20), code, server.log())

    def loading_server(self, *flags):
        """A server with a model whose loading takes minutes."""
        # ONNX Runtime computes what is constant while it loads, and nothing can stop it.
        graph = Graph().input("x", "FP32", [4]).output("y", "FP32", [4])
        graph.initializer("c0", np.zeros((1536, 1536), np.float32))
        for step in range(400):
            graph.node("MatMul", [f"c{step}", "c0"], [f"c{step + 1}"])
        graph.node("ReduceMax", ["c400"], ["most"], keepdims=0).node("Add", ["x", "most"], ["y"])
        models.place(self.repository, "endless", graph)
        server = self.start(self.repository, *flags, wait=False)
        until(lambda: "listening" in server.log(), "it listens")
        server.wait_busy()
        return server

    def test_a_model_that_loads_for_ever_does_not_keep_it(self):
        server = self.loading_server("--drain-secs", "0.5")
        server.signal(signal.SIGTERM)
        begun = time.monotonic()
        self.assertEqual(server.wait(), 1)
        self.assertLess(time.monotonic() - begun, 15)
        self.assertIn("still loading", server.log())

    def test_a_second_signal_is_heard_while_a_model_loads(self):
        server = self.loading_server("--drain-secs", "60")
        server.signal(signal.SIGTERM)
        until(lambda: "draining" in server.log(), "the drain begins")
        time.sleep(0.5)  # No request is under way: what it waits for now is the model.
        server.signal(signal.SIGTERM)
        begun = time.monotonic()
        self.assertEqual(server.wait(), 1)
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_signal_while_models_load_ends_it(self):
        for index in range(30):
            models.place(self.repository, f"squeezenet{index}", models.LIGHT_MODELS / "light_squeezenet.onnx")
        server = self.start(self.repository, wait=False)
        until(lambda: "listening" in server.log(), "it listens")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertIn("stopped", server.log())
        loaded = server.log().count("is ready")
        self.assertLess(loaded, 30, "it went on loading")
        self.assertNotIn(" ready versions=", server.log())


class Repository(OperationsTest):
    def test_sighup_rereads_the_repository(self):
        server = self.start(self.repository)
        models.place(self.repository, "fresh", models.bias(7))
        models.place(self.repository, "bias", models.bias(3), version=2)
        server.signal(signal.SIGHUP)
        until(lambda: self.ready(server, "fresh"), "the new model is there")
        until(lambda: self.versions(server) == ["2"], "the new version is there")
        self.ask(server, 7, "fresh")
        self.ask(server, 3)
        (self.repository / "fresh/1/model.onnx").unlink()
        (self.repository / "fresh/1").rmdir()
        (self.repository / "fresh").rmdir()
        server.signal(signal.SIGHUP)
        until(lambda: not self.ready(server, "fresh"), "the model has gone")
        self.ask(server, 3)

    def test_polling_follows_the_repository(self):
        server = self.start(self.repository, "--model-control-mode", "poll", "--repository-poll-secs", "0.2")
        models.place(self.repository, ".copying", models.bias(4))
        os.rename(self.repository / ".copying", self.repository / "polled")
        until(lambda: self.ready(server, "polled"), "the new model is there")
        self.ask(server, 4, "polled")
        path = self.repository / "bias/1/model.onnx"
        path.write_bytes(b"no model")
        until(
            lambda: any(entry["name"] == "bias" and entry["reason"]
                        for entry in server.call("POST", "/v2/repository/index").json()), "the failure is in the index")
        self.ask(server, 1)
        models.place(self.repository, "bias", models.bias(9))
        until(lambda: server.call("POST", "/v2/models/bias/infer", GOOD_BODY).json()["outputs"][0]["data"][0] == 10,
              "the mended model is served")
        self.assertEqual(server.call("POST", "/v2/repository/models/bias/unload", b"").status, 503)

    def test_explicit_mode_loads_what_it_is_told(self):
        models.place(self.repository, "other", models.bias(5))
        server = self.start(self.repository, "--model-control-mode", "explicit", "--load-model", "other")
        self.assertEqual((self.ready(server, "bias"), self.ready(server, "other")), (False, True))
        self.assertEqual(server.call("POST", "/v2/repository/models/bias/load", b"").status, 200)
        self.ask(server)
        self.ask(server, 5, "other")
        nothing = self.start(self.repository, "--model-control-mode", "explicit")
        self.assertEqual(self.ready(nothing, "bias"), False)
        self.assertEqual(nothing.call("GET", "/v2/health/ready").status, 200)

    def test_load_calls_need_explicit_mode(self):
        server = self.start(self.repository)
        for call in ("load", "unload"):
            answer = server.call("POST", f"/v2/repository/models/bias/{call}", b"")
            self.assertEqual(answer.status, 503, answer)
            self.assertIn("explicit", answer.error)
            self.assertRegex(answer.headers["Retry-After"], r"^\d+$")
        self.ask(server)

    def test_a_corrupt_model_does_not_touch_a_good_one(self):
        models.place(self.repository, "corrupt", models.bias()).write_bytes(b"nonsense")
        server = self.start(self.repository)
        self.ask(server)
        answer = server.call("POST", "/v2/models/corrupt/infer", GOOD_BODY)
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("corrupt", answer.error)
        self.assertEqual(server.call("GET", "/v2/health/ready").status, 200)
        strict = self.start(self.repository, "--strict-readiness", "true", wait=False)
        strict.wait_ports()
        until(lambda: " ready versions=" in strict.log(), "it has tried all")
        self.assertEqual(strict.call("GET", "/v2/health/ready").status, 503)
        self.ask(strict)
        leaving = self.start(self.repository, "--exit-on-error", "true", wait=False)
        self.assertEqual(leaving.wait(), 1)
        self.assertIn("corrupt", leaving.log())

    def test_version_policies(self):
        for version in (1, 2, 3, 10):
            models.place(self.repository, "bias", models.bias(version), version)
        models.place(self.repository, "bias", models.bias(99), "007")  # Not a version.
        models.place(self.repository, "bias", models.bias(99), "x4")
        config = self.repository / "bias/config.pbtxt"
        for policy, expected in (("", ["10"]), ("version_policy { latest { num_versions: 2 } }",
                                                ["3", "10"]), ("version_policy { all {} }", ["1", "2", "3", "10"]),
                                 ("version_policy { specific { versions: [1, 3] } }", ["1", "3"])):
            config.write_text(policy)
            server = self.start(self.repository)
            self.assertEqual(sorted(self.versions(server), key=int), expected)
            self.ask(server, int(expected[-1]))
            for version in expected:
                answer = server.call("POST", f"/v2/models/bias/versions/{version}/infer", GOOD_BODY)
                self.assertEqual((answer.json()["model_version"], answer.json()["outputs"][0]["data"][0]),
                                 (version, 1 + int(version)))
            server.stop()

    def test_several_repositories(self):
        more = self.folder / "more"
        models.place(more, "second", models.bias(6))
        server = self.start(self.repository, "--model-repository", more)
        self.ask(server)
        self.ask(server, 6, "second")

    def test_configured_slo_and_queue(self):
        models.place(self.repository,
                     "strict",
                     models.slow(),
                     config='parameters { key: "slo_ms" value { string_value: "0.001" } }')
        server = self.start(self.repository)
        body = slow_body(10).replace(b"/models/slow/", b"/models/strict/")
        with Connection(server.http_port) as connection:
            answer = connection.send(body).answer()
        self.assertEqual(answer.status, 503, answer)
        default = self.start(self.repository, "--default-slo-ms", "0.001")
        self.assertEqual(default.call("POST", "/v2/models/bias/infer", GOOD_BODY).status, 503)


class Starting(OperationsTest):
    def fails(self, code, *words, flags=(), environment=None):
        done = tandem("serve", *flags, environment=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr + done.stdout)

    def test_wrong_usage_exits_with_2(self):
        repository = ("--model-repository", str(self.repository))
        self.fails(2, "model-repository")
        self.fails(2, "--nonsense", flags=(*repository, "--nonsense"))
        self.fails(2, flags=(*repository, "--http-port", "70000"))
        self.fails(2, flags=(*repository, "--http-port", "x"))
        self.fails(2, flags=(*repository, "--model-control-mode", "sometimes"))
        self.fails(2, flags=(*repository, "--log-level", "loud"))
        self.fails(2, flags=(*repository, "--log-format", "xml"))
        self.fails(2, "explicit", flags=(*repository, "--load-model", "bias"))
        self.fails(2, flags=(*repository, "--workers", "65"))
        self.fails(2, flags=(*repository, "--allow-http", "false", "--allow-grpc", "false"))
        self.fails(2, "--tls-key", flags=(*repository, "--tls-cert", "x"))
        self.fails(2, flags=(*repository, "--http-address", "localhost:80"))
        self.fails(2, flags=(*repository, "--provider", "magic"))
        self.fails(2, flags=repository, environment={"TANDEM_HTTP_PORT": "many"})
        self.fails(2, "nan", flags=(*repository, "--drain-secs", "nan"))

    def test_an_address_for_everyone_needs_protection(self):
        ports = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")
        for flag in ("--http-address", "--grpc-address", "--metrics-address"):
            for address in ("0.0.0.0", "::", "192.0.2.1"):
                self.fails(2,
                           flag,
                           "--token-file",
                           "--insecure",
                           flags=("--model-repository", str(self.repository), *ports, flag, address))
        server = self.start(self.repository, "--http-address", "0.0.0.0", "--insecure")
        self.ask(server)

    def test_a_port_in_use_is_named(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            for flag in ("--http-port", "--grpc-port", "--metrics-port"):
                ports = [
                    part for name in ("--http-port", "--grpc-port", "--metrics-port")
                    for part in (name, str(port if name == flag else 0))
                ]
                self.fails(1, str(port), "use", flags=("--model-repository", str(self.repository), *ports))

    PORTS = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")

    def test_files_that_cannot_be_used_are_named(self):
        base = ("--model-repository", str(self.repository), *self.PORTS)
        self.fails(2, "/nonexistent", flags=("--model-repository", "/nonexistent/models", *self.PORTS))
        self.fails(2, "--ports-file", "/nonexistent", flags=(*base, "--ports-file", "/nonexistent/x"))
        file, pipe = self.folder / "file", self.folder / "pipe"
        file.write_text("nothing of use\n")
        os.mkfifo(pipe)  # Reading it would take for ever.
        self.fails(2, str(file), flags=("--model-repository", str(file), *self.PORTS))
        self.fails(2, "--ort-library", str(file), flags=(*base, "--ort-library", str(file)))
        for path in ("/nonexistent/file", str(pipe), str(self.folder)):
            for flag in ("--token-file", "--ort-library", "--tls-cert", "--tls-key", "--tls-client-ca"):
                flags = (flag, path) if "tls" not in flag else [
                    part for name in ("--tls-cert", "--tls-key", "--tls-client-ca")
                    for part in (name, path if name == flag else str(file))
                ]
                self.fails(2, flag, path, flags=(*base, *flags))

    def test_too_few_open_files_are_no_wrong_usage(self):
        for limit in (16, 24, 32):
            server = self.start(self.repository, open_files=limit, wait=False)
            self.assertEqual(server.wait(), 1, server.log())
            self.assertIn(f"the limit on open files, {limit}, is too low", server.log())

    def test_an_empty_name_does_not_take_protection_away(self):
        base = ("--model-repository", str(self.repository), *self.PORTS)
        config = self.folder / "serve.toml"
        for name in ("token-file", "tls-cert", "tls-key", "tls-client-ca"):
            self.fails(2, f"--{name}", flags=(*base, f"--{name}", ""))
            config.write_text(f'{name} = ""\n')
            self.fails(2, f"--{name}", flags=(*base, "--config", str(config)))
            variable = "TANDEM_" + name.upper().replace("-", "_")
            self.fails(2, variable, flags=base, environment={variable: ""})
        self.ask(self.start(self.repository, environment={"TANDEM_DEFAULT_SLO_MS": ""}))

    def test_closed_standard_descriptors_stay_unused(self):
        ports = self.folder / "ports"
        process = subprocess.Popen([
            "sh", "-c", 'exec "$@" <&- >&- 2>&-', "-", BINARY, "serve", "--model-repository", self.repository, *self.PORTS,
            "--ports-file", ports, "--log-level", "debug"
        ])
        self.addCleanup(process.kill)
        until(lambda: process.poll() is not None or ports.exists(), "it listens")
        used = {os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)}
        self.assertEqual(used, {"/dev/null"})
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_options_come_from_the_environment_and_a_file(self):
        file = self.folder / "serve.toml"
        file.write_text('log-format = "json"\nmax-queue = 5\n')
        server = self.start(self.repository, "--config", file, environment={"TANDEM_LOG_LEVEL": "debug"})
        self.assertTrue(server.log().startswith("{"))
        self.ask(server)
        named = self.start(self.repository, environment={"TANDEM_CONFIG": str(file)})
        self.assertTrue(named.log().startswith("{"))
        for missing in ("/nonexistent/serve.toml", str(self.folder)):
            variable = {"TANDEM_CONFIG": missing}
            self.fails(2, missing, environment=variable)
            self.fails(2, missing, flags=("--model-repository", self.repository), environment=variable)
        given = self.start(self.repository, "--config", file, environment={"TANDEM_CONFIG": "/nonexistent"})
        self.assertTrue(given.log().startswith("{"))
        self.assertEqual(tandem("version", environment={"TANDEM_CONFIG": "/nonexistent"}).returncode, 0)
        file.write_text("nonsense = 3\n")
        done = tandem("serve", "--config", file, "--model-repository", self.repository)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_the_ports_are_written_whole(self):
        server = self.start(self.repository)
        self.assertEqual({path.name for path in server.ports_file.parent.iterdir()}, {"log", "ports", "state"})
        ports = {"http": server.http_port, "grpc": server.grpc_port, "metrics": server.metrics_port}
        self.assertEqual(json.loads(server.ports_file.read_text()), ports)

    def test_says_when_open_files_are_fewer_than_connections(self):
        fewer = self.start(self.repository, "--max-connections", "5000", open_files=512)
        self.assertIn(" warning fewer connections than --max-connections", fewer.log())
        enough = self.start(self.repository, "--max-connections", "20", open_files=512)
        self.assertNotIn("--max-connections", enough.log())

    def test_only_one_front_end(self):
        server = self.start(self.repository, "--allow-grpc", "false", "--allow-metrics", "false")
        self.assertEqual((server.grpc_port, server.metrics_port), (0, 0))
        self.ask(server)
        only_grpc = self.start(self.repository, "--allow-http", "false")
        self.assertEqual(only_grpc.http_port, 0)


class Threads(OperationsTest):
    def setUp(self):
        super().setUp()
        models.place(self.repository, "slow", models.slow())

    def compute(self, *flags):
        server = self.start(self.repository, *flags)
        with Connection(server.http_port) as connection:
            self.assertEqual(connection.send(slow_body(1000)).answer().status, 200)
        return server

    def test_threads_of_runs_keep_to_a_core_each(self):
        cores = os.sched_getaffinity(0)
        server = self.compute()
        workers = server.cores_of("worker-")
        if len(cores) < 2 or len(workers) != len(cores):
            self.skipTest("runs have no thread for each core here")
        pool = server.cores_of("ort-pool")
        self.assertEqual([len(of) for of in pool], [1] * (len(cores) - 1))
        left = cores.difference(*pool)
        self.assertEqual(len(left), 1, "no two have the same")
        self.assertIn(left, workers, "the one that began the run has the core that the others leave")

    def test_threads_of_runs_go_where_the_kernel_wants_if_they_are_let(self):
        cores = os.sched_getaffinity(0)
        for flags in (["--pin-threads", "false"], ["--threads", str(len(cores) + 1)]):
            server = self.compute(*flags)
            for thread in ("worker-", "ort-pool"):
                self.assertTrue(all(of == cores for of in server.cores_of(thread)), (flags, thread))


class Logs(OperationsTest):
    def test_json_lines_are_json(self):
        models.place(self.repository, "corrupt", models.bias()).write_bytes(b"nonsense \"quoted\" \xff")
        server = self.start(self.repository, "--log-format", "json", "--log-level", "debug", "--model-control-mode",
                            "explicit", "--load-model", "*")
        self.ask(server)
        for name in ("x%0ay", "%22quoted%22", "%F0%9F%98%80", "%ff"):
            server.call("POST", f"/v2/repository/models/{name}/load", b"")
        server.call("POST", "/v2/repository/models/bias/load", b'{"parameters": {"config": "{\\n\\"forged\\": "}}')
        with Connection(server.http_port) as connection:
            connection.send(b"\xff\x00\r\n\r\n").answer()
        server.stop()
        lines = server.log().splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            entry = json.loads(line)
            self.assertRegex(entry["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
            self.assertIn(entry["level"], {"debug", "info", "warning", "error"})
            self.assertTrue(entry["message"])

    def test_nobody_forges_a_line(self):
        server = self.start(self.repository, "--model-control-mode", "explicit")
        server.call("POST", "/v2/repository/models/bias/load",
                    json.dumps({"parameters": {"config": "{\n2026-01-01T00:00:00.000 error forged"}}).encode())
        server.stop()
        for line in server.log().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+ \w+ ")
            self.assertFalse(line.split(" ", 2)[2].startswith("forged"))

    def test_the_level_can_be_changed(self):
        quiet = self.start(self.repository, "--log-level", "off")
        self.ask(quiet)
        self.assertEqual(quiet.log(), "")
        server = self.start(self.repository, "--model-control-mode", "explicit", "--load-model", "*")
        server.call("POST", "/v2/logging", {"log_info": False, "log_warning": False})
        before = server.log()
        models.place(self.repository, "bias", models.bias(2))  # What has not changed is not loaded again.
        server.call("POST", "/v2/repository/models/bias/load", b"")
        self.assertEqual(server.log(), before)
        server.call("POST", "/v2/logging", {"log_info": True})
        models.place(self.repository, "bias", models.bias(3))
        server.call("POST", "/v2/repository/models/bias/load", b"")
        until(lambda: server.log() != before, "it speaks again")

    def test_the_settings_show_and_keep_the_level(self):
        def settings(server, changes=None):
            return server.call("POST" if changes else "GET", "/v2/logging", changes).json()

        server = self.start(self.repository, "--log-level", "warning", wait=False)
        server.wait_ports()
        shown = settings(server)
        self.assertEqual((shown["log_info"], shown["log_warning"], shown["log_error"], shown["log_verbose_level"]),
                         (False, True, True, 0))
        self.assertEqual(settings(server, {"log_format": "ISO8601"})["log_info"], False)
        server.signal(signal.SIGHUP)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertNotIn(" info ", server.log())
        self.assertEqual(settings(self.start(self.repository, "--log-level", "debug"))["log_verbose_level"], 1)
        iso = self.start(self.repository)
        settings(iso, {"log_format": "ISO8601"})
        iso.stop()
        self.assertRegex(iso.log().splitlines()[-1], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z info stopped$")

    def test_requests_are_in_the_log(self):
        server = self.start(self.repository, "--log-level", "debug", "--log-format", "json")
        body = json.loads(GOOD_BODY)
        server.call("POST", "/v2/models/bias/infer", {**body, "id": "mine"})
        server.call("POST", "/v2/models/bias/infer", {"inputs": body["inputs"]})
        server.call("POST", "/v2/models/missing/infer", GOOD_BODY)
        server.stop()
        lines = [json.loads(line) for line in server.log().splitlines()]
        mine, nameless, failed = [line for line in lines if line["message"] == "request"]
        self.assertEqual([mine[key] for key in ("id", "model", "version", "outcome")], ["mine", "bias", "1", "success"])
        self.assertGreaterEqual(int(mine["total_us"]), int(mine["queue_us"]) + int(mine["compute_us"]))
        self.assertRegex(nameless["id"], r"^r-\d+$")
        self.assertEqual((failed["model"], failed["outcome"]), ("missing", "invalid"))
        self.assertIn("missing", failed["reason"])
        quiet = self.start(self.repository)
        self.ask(quiet)
        quiet.stop()
        self.assertNotIn(" request ", quiet.log())

    def test_many_servers_at_once(self):
        servers = []
        threads = [threading.Thread(target=lambda: servers.append(Server(self.repository))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        for server in servers:
            self.addCleanup(server.stop)
        self.assertEqual(len({server.http_port for server in servers}), 4)
        for server in servers:
            self.ask(server)
