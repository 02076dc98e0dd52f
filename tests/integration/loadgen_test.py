"""The load generator against a real server: what it finds, and what it says when something is wrong."""
import csv
import json
import re
import signal
import subprocess

import models
from tandem_server import BINARY, PATIENCE, TandemTest, tandem

# A bound that a loaded machine keeps, too: how fast the server is, is not the matter of a test.
GENEROUS = ("--slo-ms", "20000")


class Loadgen(TandemTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "models"
        self.repository.mkdir()
        models.place(self.repository, "bias", models.bias())
        models.place(self.repository, "reciprocal", models.reciprocal())

    def serve(self, *flags):
        self.server = self.start(self.repository, *flags)
        return ("--url", f"http://{self.server.http}")

    def run_load(self, *arguments, code=0):
        done = tandem("loadgen", *arguments)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def finish(self, process):
        output = process.stdout.read()
        return process.wait(PATIENCE), output

    def test_a_run_passes_and_all_its_reports_agree(self):
        url = self.serve()
        files = {kind: self.folder / f"report.{kind}" for kind in ("json", "csv", "html")}
        flags = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
        done = self.run_load("--model", "bias", "--rate", "250", "--duration", "3", "--warmup", "0.5", *GENEROUS, *flags,
                             "--token", "secret", *url)
        self.assertIn("PASS", done.stdout)
        self.assertIn("as the server saw it", done.stdout)
        report = json.loads(files["json"].read_text())
        self.assertEqual((report["result"], report["partial"], report["problems"]), ("pass", False, []))
        model = report["models"][0]
        self.assertEqual(model["ok"], model["scheduled"])
        self.assertGreaterEqual(model["scheduled"], 459)  # Fewer could not pass.
        self.assertEqual(sum(model["timeline"]["ok"]), model["ok"])
        self.assertEqual(report["server"].split()[0], "tandem")
        self.assertNotIn("secret", files["json"].read_text())
        with open(files["csv"], newline="") as file:
            rows = list(csv.DictReader(file))
        measured = [row for row in rows if row["warmup"] == "0"]
        self.assertEqual(len(measured), model["scheduled"])
        self.assertEqual({row["outcome"] for row in measured}, {"ok"})
        for row in rows:
            times = [float(row[name]) for name in ("scheduled_s", "sent_s", "first_byte_s", "done_s")]
            self.assertEqual(times, sorted(times))
        # The server counted the same requests, those of the warm-up included.
        self.assertEqual(report["server_view"][0]["requests"], len(rows))
        page = files["html"].read_text()
        inside = re.search(r'<script id="report" type="application/json">(.*?)</script>', page, re.S)
        self.assertEqual(json.loads(inside[1]), report)

    def test_other_arrivals_and_json_tensors(self):
        url = self.serve()
        trace = self.folder / "trace.csv"
        trace.write_text("time_s,model,size\n" + "".join(f"{i / 100},,1\n" for i in range(50)))
        for arrivals in (("--users", "3"), ("--arrivals", "constant", "--rate", "50"),
                         ("--arrivals", "bursty:on=200,off=0,on_s=0.1,off_s=0.1"), ("--arrivals", "ramp:from=10,to=100"),
                         ("--arrivals", "steps:20x0.5,60x0.5"), ("--arrivals", "diurnal:mean=50,swing=1,period_s=1"),
                         ("--arrivals", f"trace:{trace}")):
            report = self.folder / "report.json"
            done = tandem("loadgen", "--model", "bias", *arrivals, "--duration", "1", "--warmup", "0", "--format", "json",
                          "--json", report, *url)
            # On a machine that is busy itself the run is invalid, which is not the matter here.
            self.assertIn(done.returncode, (0, 3), f"{arrivals}\n{done.stdout}\n{done.stderr}")
            model = json.loads(report.read_text())["models"][0]
            self.assertEqual(model["ok"], model["scheduled"], arrivals)
            self.assertGreater(model["ok"], 0, arrivals)
            if "trace" in arrivals[1]:
                self.assertEqual(model["ok"], 50)

    def test_too_few_requests_decide_nothing(self):
        done = self.run_load("--model", "bias", "--rate", "20", "--duration", "1", *GENEROUS, *self.serve(), code=3)
        self.assertRegex(done.stdout, r"INCONCLUSIVE: .*more requests")

    def test_an_slo_that_nobody_keeps_fails(self):
        url = self.serve()
        report = self.folder / "report.json"
        for told in ("--send-slo", "--no-send-slo"):
            done = tandem("loadgen", "--model", "bias", "--rate", "100", "--duration", "1", "--slo-ms", "0.001", told, "--json",
                          report, *url)
            # On a machine that is busy itself the run is invalid; its figures are the same.
            self.assertIn(done.returncode, (1, 3), f"{done.stdout}\n{done.stderr}")
            self.assertIn("FAIL", done.stdout)
            model = json.loads(report.read_text())["models"][0]
            self.assertEqual(model["ok"], 0)
            # A server that is told drops what is late already; one that is not computes it in vain.
            self.assertEqual(model["rejected"] > 0, told == "--send-slo", model)

    def test_the_highest_rate_that_passes_is_searched_for(self):
        done = self.run_load("--model", "bias", "--rate", "300", "--highest-rate", "600", "--duration", "2", "--warmup", "0.2",
                             *GENEROUS, "--find-max", *self.serve())
        self.assertRegex(done.stdout, r"600")
        self.assertIn("PASS", done.stdout)

    def test_sides_are_compared_in_turn(self):
        url = self.serve()
        spec, result = self.folder / "sides.json", self.folder / "result.json"
        spec.write_text(
            json.dumps({
                "repetitions": 3, "seed": 7, "arguments": ["--model", "bias", "--rate", "20", "--duration", "0.3", "--warmup",
                                                           "0", *GENEROUS, *url],
                "sides": [{"name": "few"}, {"name": "many", "arguments": ["--rate", "400"]}]
            }))
        done = self.run_load("compare", spec, "--json", result)
        self.assertEqual(done.stdout.count("repetition 3 of 3"), 2, done.stdout)
        report = json.loads(result.read_text())
        self.assertEqual(report["sides"], ["few", "many"])
        rate = next(c for c in report["comparisons"] if "per second" in c["figure"])
        self.assertGreater(rate["ratio"], 4)
        self.assertIn("many is", rate["text"])

    def test_counts_per_minute_become_a_trace_that_can_be_replayed(self):
        counts, trace, report = (self.folder / name for name in ("counts.csv", "trace.csv", "report.json"))
        counts.write_text("minute,count\n5,20\n6,0\n7,10\n")
        self.run_load("convert", counts, trace, "--form", "minutes", "--speed", "300", "--even")
        self.assertEqual(len(trace.read_text().splitlines()), 31)
        done = tandem("loadgen", "--model", "bias", "--arrivals", f"trace:{trace}", "--duration", "1", "--warmup", "0", "--json",
                      report, *self.serve())
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertEqual(json.loads(report.read_text())["models"][0]["ok"], 30)
        azure = "HashOwner,HashApp,HashFunction,Trigger,1,2\no,a,f,http,3,4\no,a,g,http,5,6\n"
        counts.write_text(azure)
        self.run_load("convert", counts, trace, "--function", "g", "--scale", "2")
        self.assertEqual(len(trace.read_text().splitlines()), 23)
        for text, flags, word in ((azure, ("--form", "minutes"), "line 1"), (azure, ("--function", "none"), "none"),
                                  (azure, ("--speed", "0"), "--speed"), (azure, ("--scale", "nan"), "--scale"),
                                  (azure.replace("6", "x"), (), "line 3")):
            counts.write_text(text)
            done = tandem("loadgen", "convert", counts, trace, *flags)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(word, done.stderr + done.stdout, flags)

    def test_a_specification_that_makes_no_sense_is_told(self):
        spec = self.folder / "sides.json"
        side = {"name": "a", "arguments": ["--model", "bias", "--rate", "5"]}
        other = dict(side, name="b")
        for text, word in (("", "JSON"), ("[]", "JSON"), ("{", "JSON"), ("[" * 1000, "JSON"), ("{}", "sides"),
                           ({"sides": [side]}, "sides"), ({"sides": [side, side]}, "'a'"), ({"sides": [side, 5]}, "sides[1]"),
                           ({"sides": [side, {}]}, "name"), ({"sides": [side, other], "odd": 1}, "'odd'"),
                           ({"sides": [side, other], "repetitions": 0}, "repetitions"),
                           ({"sides": [side, other], "repetitions": 1.5}, "repetitions"),
                           ({"sides": [side, other], "confidence": 1}, "confidence"),
                           ({"sides": [side, dict(other, arguments=["--nonsense"])]}, "--nonsense"),
                           ({"sides": [side, dict(other, arguments=[5])]}, "arguments"),
                           ({"sides": [{"name": "a", "arguments": ["--model", "bias"]}, other]}, "--rate")):
            spec.write_text(text if isinstance(text, str) else json.dumps(text))
            done = tandem("loadgen", "compare", spec)
            self.assertEqual(done.returncode, 2, f"{text}: {done.stderr}")
            self.assertIn(word, done.stderr, text)
        self.assertEqual(tandem("loadgen", "compare", self.folder / "none.json").returncode, 2)

    def test_a_server_that_dies_fails_the_run(self):
        report = self.folder / "report.json"
        process = self.begin_load("--model", "bias", "--rate", "100", "--duration", "3", *GENEROUS, "--json", report,
                                  *self.serve())
        self.server.process.kill()
        code, output = self.finish(process)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"failed: (connection lost|could not connect)")
        self.assertGreater(json.loads(report.read_text())["models"][0]["failed"], 0)

    def test_an_interrupted_run_reports_what_it_has(self):
        report = self.folder / "report.json"
        process = self.begin_load("--model", "bias", "--rate", "100", "--duration", "600", *GENEROUS, "--json", report,
                                  *self.serve())
        process.send_signal(signal.SIGINT)
        code, output = self.finish(process)
        self.assertEqual(code, 3, output)
        self.assertIn("PARTIAL", output)
        self.assertTrue(json.loads(report.read_text())["partial"])

    def test_what_cannot_be_is_told_before_any_load(self):
        nowhere = ("--url", "http://127.0.0.1:1")
        base = ("--model", "bias")
        bad_trace = self.folder / "bad.csv"
        bad_trace.write_text("time_s,model,size\n1,,1\n0.5,,1\n")
        for arguments, word in (((), "--model"), (base, "--rate"), ((*base, "--rate", "0"), "rate"),
                                ((*base, "--rate", "1e9"), "rate"), ((*base, "--rate", "nan"), "rate"),
                                ((*base, "--rate", "5", "--users", "2"), "--users"), ((*base, "--users", "0"), "users"),
                                ((*base, "--rate", "5", "--slo-ms", "-1"), "--slo-ms"),
                                ((*base, "--rate", "5", "--duration", "0"), "--duration"),
                                ((*base, "--rate", "5", "--percentile", "100"), "--percentile"),
                                ((*base, "--arrivals", "bursty:on=1"), "off"), ((*base, "--arrivals", "odd"), "odd"),
                                ((*base, "--arrivals", f"trace:{bad_trace}"), "line 3"),
                                ((*base, "--rate", "5", "--find-max"), "--slo-ms"),
                                ((*base, "--rate", "5", "--json", "/no/such/folder/x"), "--json"),
                                ((*base, "--rate", "5", "--csv", "/no/such/folder/x"), "--csv"),
                                ((*base, "--rate", "5", "--html", str(self.folder)), "--html")):
            done = tandem("loadgen", *arguments, *nowhere)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout} {done.stderr}")
            self.assertIn(word, done.stderr + done.stdout, arguments)
        for url in ("http://", "127.0.0.1:8000", "ftp://127.0.0.1", "grpc://127.0.0.1:70000"):
            done = tandem("loadgen", *base, "--rate", "5", "--url", url)
            self.assertEqual(done.returncode, 2, f"{url}: {done.stderr}")
            self.assertIn(url, done.stderr)
        for url in ("https://127.0.0.1:1", "grpc://127.0.0.1:1", "grpcs://127.0.0.1:1"):
            done = self.run_load(*base, "--rate", "5", "--url", url, code=1)
            self.assertIn("127.0.0.1:1", done.stderr)
        done = tandem("loadgen", *base, "--rate", "5", *nowhere, "--metrics-url", "grpc://127.0.0.1:1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--metrics-url", done.stderr)
        done = self.run_load(*base, "--rate", "5", *nowhere, code=1)
        self.assertIn("127.0.0.1:1", done.stderr)
        done = self.run_load("--model", "nobody", "--rate", "5", *self.serve(), code=1)
        self.assertIn("nobody", done.stderr)

    def test_a_full_disk_is_told_and_the_verdict_stands_in_the_output(self):
        done = self.run_load("--model", "bias", "--rate", "200", "--duration", "3", *GENEROUS, "--csv", "/dev/full",
                             *self.serve(), code=1)
        self.assertIn("PASS", done.stdout)
        self.assertIn("--csv", done.stderr)
        self.assertIn("No space", done.stderr)
