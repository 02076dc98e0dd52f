"""`tandem bench`: scenario files of one's own, peers that serve, fail or are not installed. How fast anything is, is not
the matter here: windows are short, and figures only have to be there."""
import json
import os
import pathlib
import signal
import subprocess
import sys

from tandem_server import BINARY, PATIENCE, TandemTest, until

BENCH = BINARY.parent / "tandem-bench"

# Answers GET / once it listens, and every POST with the status that it was told.
PEER = """
import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        self.answer(int(os.environ["STATUS"]))

    def log_message(self, *_):
        pass

print("peer", os.getpid(), flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def row(metric, cell, of, unit="ms", **goal):
    return {"metric": metric, "cell": cell, "of": of, "unit": unit, **goal}


class Bench(TandemTest):
    def setUp(self):
        super().setUp()
        (self.folder / "peer.py").write_text(PEER)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def environment(self):
        settings = {key: value for key, value in os.environ.items() if not key.startswith("TANDEM_")}
        return {**settings, "TMPDIR": str(self.temporary)}

    def bench(self, *arguments, code=0):
        done = subprocess.run([str(BENCH), *map(str, arguments)],
                              capture_output=True,
                              text=True,
                              timeout=4 * PATIENCE,
                              env=self.environment())
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def scenario(self, status="200", command=None, rounds=1, **peer):
        """Writes a scenario file: our server and a peer on the tiny model. Its path."""
        pace = {"minutes": 1, "rounds": rounds, "warmup_s": 0, "window_s": 1}
        peer = {
            "name": "other",
            "command": command or [sys.executable, "{folder}/peer.py", "{port}"],
            "environment": {"STATUS": status},
            "ready": "/",
            "start_timeout_s": PATIENCE,
            **peer
        }
        sides = [{
            "name": "ours",
            "from": "tandem",
            "protocol": "rest_binary"
        }, {
            "name": "other",
            "from": "peer",
            "peer": "other",
            "protocol": "raw",
            "path": "/infer"
        }]
        rows = [
            row("p50", "ours", "ours.p50"),
            row("p50", "other", "other.p50"),
            row("throughput ÷ peer", "tiny", "ours.rate", "×", over="other.rate", must=1e-9, better="higher")
        ]
        file = self.folder / "mine.json"
        file.write_text(
            json.dumps({
                "name": "mine",
                "what": "a scenario of one's own",
                "full": pace,
                "quick": pace,
                "peers": [peer],
                "measurements": [{
                    "kind": "side_by_side",
                    "model": "tiny",
                    "users": 2,
                    "sides": sides,
                    "rows": rows
                }]
            }))
        return file

    def rows_of(self, *arguments):
        report = self.folder / "report.json"
        self.bench(*arguments, "--json", report)
        return report, json.loads(report.read_text())["rows"]

    def test_scenarios_are_listed(self):
        listed = json.loads(self.bench("list", "--json").stdout)
        self.assertLessEqual({"loadgen", "serving"}, {scenario["name"] for scenario in listed})

    def test_a_scenario_of_ones_own_compares_us_with_its_peer(self):
        report, rows = self.rows_of(self.scenario(), "--quick")
        self.assertEqual([one["metric"] for one in rows], ["p50", "p50", "throughput ÷ peer"])
        for one in rows:
            self.assertGreater(one["value"], 0)
            self.assertTrue(one["met"])
            self.assertNotIn("why", one)
        self.assertIn("all 3 rows", self.bench("check", report).stdout)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_only_what_is_chosen_is_started(self):
        _, rows = self.rows_of(self.scenario(command=["/no/such/program", "{port}"]), "--only", "p50: ours")
        self.assertEqual([one["cell"] for one in rows], ["ours"])

    def test_rows_of_a_peer_that_does_not_start_are_not_run(self):
        file = self.scenario(command=[sys.executable, "-c", "import sys; sys.exit('no model of that kind')", "{port}"])
        report, rows = self.rows_of(file)
        self.assertGreater(rows[0]["value"], 0)
        for one in rows[1:]:
            self.assertIsNone(one["value"])
            self.assertFalse(one["met"])
            self.assertIn("no model of that kind", one["why"])
        log = rows[1]["why"].rsplit("its log is kept: ", 1)[1].rstrip(")")
        self.assertIn("no model of that kind", pathlib.Path(log).read_text())
        self.assertIn("not run: throughput", self.bench("check", report, code=1).stdout)

    def test_rows_of_a_peer_that_answers_with_errors_are_not_run(self):
        _, rows = self.rows_of(self.scenario(status="500"))
        self.assertGreater(rows[0]["value"], 0)
        self.assertIn("HTTP 500", rows[1]["why"])

    def test_rows_of_a_peer_that_is_not_installed_say_how_to_get_it(self):
        _, rows = self.rows_of(self.scenario(packages="mlserver", command=["{python}", "{port}"]))
        self.assertEqual(rows[2]["why"], "./tandem bench peers install mlserver")

    def test_an_interrupted_run_leaves_nothing_behind(self):
        process = subprocess.Popen([str(BENCH), str(self.scenario(rounds=1000))],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   text=True,
                                   env=self.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        until(lambda: "round 2" in process.stderr.readline(), "the second round begins")
        log = next(self.temporary.glob("*/other-*.log"))
        peer = pathlib.Path("/proc") / log.read_text().split()[1]
        self.assertTrue(peer.exists())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGINT)
        self.assertFalse(peer.exists())
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_mistake_in_a_file_is_told_with_its_place(self):
        file = self.scenario()
        file.write_text(file.read_text().replace('"over"', '"ovr"'))
        self.assertIn("/measurements/0/rows/2/ovr: is not known here", self.bench(file, code=2).stderr)
