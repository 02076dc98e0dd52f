"""The page that `tandem loadgen --html` writes, in a real browser: what a person sees of it."""
import http.server
import json
import re
import signal
import subprocess
import threading

import models
from browser import Browser
from tandem_server import BINARY, PATIENCE, TandemTest, tandem

GENEROUS = ("--slo-ms", "20000")


def contrast(a, b):
    """Of two colours as the browser tells them, by the rule of WCAG."""
    def luminance(text):
        parts = [int(part) / 255 for part in re.findall(r"\d+", text)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055)**2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class ScriptedMetrics:
    """A server of /metrics with a training job that goes on with every reading."""
    def __init__(self):
        self.readings = 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                owner.readings += 1
                body = (f'tandem_training_iterations_total{{job="7"}} {owner.readings * 5}\n'
                        f'tandem_training_held_seconds_total{{job="7",reason="slack"}} {owner.readings * 0.2}\n').encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Page(TandemTest):
    def setUp(self):
        super().setUp()
        repository = self.folder / "models"
        repository.mkdir()
        models.place(repository, "bias", models.bias())
        models.place(repository, "reciprocal", models.reciprocal())
        self.server = self.start(repository)
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def make(self, *arguments):
        """A page and its report of a real run."""
        page, report = self.folder / "report.html", self.folder / "report.json"
        done = tandem("loadgen", *arguments, "--html", page, "--json", report, "--url", f"http://{self.server.http}")
        self.assertTrue(page.exists(), done.stdout + done.stderr)
        return page, json.loads(report.read_text()), done

    def visible(self, selector):
        return self.browser.value(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return ''; "
                                  "const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0 ? e.textContent : ''; })()")

    def points(self, selector):
        path = self.browser.value(f"document.querySelector({json.dumps(selector)})?.getAttribute('d') || ''")
        return len(re.findall("[ML]", path))

    def check_text_of_plots(self):
        labels = self.browser.value("[...document.querySelectorAll('svg')]"
                                    ".map(e => e.getAttribute('role') + ' ' + e.getAttribute('aria-label'))")
        self.assertGreater(len(labels), 2)
        for label in labels:
            self.assertRegex(label, r"^img .{20,}")

    def test_a_run_is_shown_as_it_was(self):
        page, report, _ = self.make("--model", "bias", "--rate", "250", "--duration", "3", "--warmup", "0.2", *GENEROUS)
        self.browser.open(page)
        word = {"pass": "PASS", "invalid": "INVALID"}[report["result"]]  # A busy machine makes a run invalid.
        self.assertEqual(self.visible(".verdict strong"), word)
        self.assertEqual(self.browser.value("document.title"), f"{word}: bias")
        model = report["models"][0]
        answered = sum(1 for ok, late in zip(model["timeline"]["ok"], model["timeline"]["late"]) if ok + late)
        self.assertGreater(answered, 10)
        for line in ("p50", "p99", "max"):
            self.assertEqual(self.points(f"svg.latency path.{line}"), answered, line)
        self.assertGreater(self.points("svg.distribution path.p50"), 100)
        self.assertGreaterEqual(self.browser.value("document.querySelectorAll('svg.outcomes rect').length"), answered)
        self.assertIn("SLO 20,000 ms", self.visible("svg.latency"))
        self.assertIn(f"{model['scheduled']:,}", self.visible("#model"))
        self.assertIn("Both views", self.visible("main"))
        self.assertNotIn("Training", self.visible("main"))
        self.check_text_of_plots()
        # The numbers behind a plot, for whoever cannot see it.
        self.browser.value("document.querySelector('details').open = true")
        rows = "document.querySelectorAll('details tbody tr').length"
        self.browser.value(f"new Promise(done => {{ const look = () => {rows} ? done() : setTimeout(look, 10); look(); }})")
        self.assertEqual(self.browser.value(rows), len(model["timeline"]["ok"]))
        self.browser.value("document.querySelector('svg.latency').focus()")
        self.browser.press("ArrowRight")
        self.assertRegex(self.visible("#tip"), r"^0\.0 to ")
        self.assertEqual(self.browser.complaints(), [])

    def test_it_is_readable_in_both_colour_schemes_and_on_a_phone(self):
        page, _, _ = self.make("--model", "bias", "--users", "1", "--duration", "1", "--slo-ms", "0.001", "--no-send-slo")
        grounds = {}
        for scheme in ("light", "dark"):
            for width in (1200, 390):
                self.browser.open(page, width=width, scheme=scheme)
                style = self.browser.value(
                    "(() => { const of = (s, p) => getComputedStyle(document.querySelector(s))[p];"
                    " return [[of('body', 'color'), of('body', 'backgroundColor')],"
                    " [of('.card h3', 'color'), of('.card', 'backgroundColor')],"
                    " [of('.verdict span', 'color'), of('.verdict', 'backgroundColor')],"
                    " [of('.verdict strong', 'color'), of('.verdict', 'backgroundColor')]]; })()")
                grounds[scheme] = style[0][1]
                # Large letters may have less.
                for (ink, ground), least in zip(style, (4.5, 4.5, 4.5, 3)):
                    self.assertGreaterEqual(contrast(ink, ground), least, (scheme, ink, ground))
                # Nothing is wider than the screen, and plots use the room that there is.
                self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
                chart = self.browser.value("document.querySelector('svg.latency').getBoundingClientRect().width")
                self.assertGreater(chart, width * 0.7 if width < 600 else 900)
                self.assertGreater(self.points("svg.latency path.p99"), 3)
                self.assertGreater(self.browser.value("document.querySelectorAll('svg.latency .mark.late').length"), 0)
                self.assertEqual(self.browser.complaints(), [])
        self.assertNotEqual(grounds["light"], grounds["dark"])

    def test_each_load_of_a_mix_can_be_looked_at_and_training_stands_beside_it(self):
        metrics = ScriptedMetrics()
        self.addCleanup(metrics.close)
        spec = self.folder / "mix.json"
        spec.write_text(
            json.dumps({
                "duration": 3, "warmup": 0, "metrics_url": metrics.url,
                "models": [{"model": "bias", "rate": 40, "slo_ms": 20000},
                           {"name": "other </script> load", "model": "reciprocal", "rate": 30, "slo_ms": 0.001, "send_slo": False,
                            "expect": "first"}]
            }))
        page, report, done = self.make("--spec", spec)
        self.assertRegex(done.stdout, r"held \d+ %")
        self.assertIn("training beside it", done.stdout)
        job = report["training"]["jobs"][0]
        self.assertEqual((job["job"], list(job["held_s"])), ("7", ["slack"]))
        self.assertGreater(job["iterations"], 0)
        self.browser.open(page)
        self.assertEqual(self.browser.value("[...document.querySelectorAll('[role=tab]')].map(e => e.textContent)"),
                         ["bias", "other </script> load"])
        self.assertIn("20,000", self.visible("table"))
        self.assertEqual(self.browser.value("document.querySelectorAll('svg.latency .mark.late').length"), 0)
        self.browser.value("document.querySelectorAll('[role=tab]')[1].click()")
        self.assertGreater(self.browser.value("document.querySelectorAll('svg.latency .mark.late').length"), 0)
        self.assertIn("answers compared", self.visible("#model"))
        # The time axes of all plots are one.
        self.assertGreater(self.points("svg.training path"), 1)
        self.assertGreater(self.points("svg.held path"), 1)
        edges = self.browser.value("['latency', 'outcomes', 'training', 'held'].map(name => document.querySelector('svg.' + name)"
                                   ".getBoundingClientRect()).map(box => [box.left, box.right].join())")
        self.assertEqual(len(set(edges)), 1, edges)
        self.assertIn("job 7", self.visible("#model"))
        self.check_text_of_plots()
        self.assertEqual(self.browser.complaints(), [])

    def test_a_run_that_was_stopped_says_so(self):
        page = self.folder / "report.html"
        process = subprocess.Popen([
            str(BINARY), "loadgen", "--model", "bias", "--rate", "100", "--duration", "600", "--warmup", "0", *GENEROUS, "--html",
            str(page), "--url", f"http://{self.server.http}"
        ],
                                   stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertIn("/s", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn("PARTIAL", process.stdout.read())
        self.assertEqual(process.wait(PATIENCE), 3)
        self.browser.open(page)
        self.assertEqual(self.visible(".verdict strong"), "INVALID")
        self.assertIn("stopped before its time", self.visible(".verdict"))
        self.assertGreater(self.points("svg.latency path.p99"), 0)
        self.assertEqual(self.browser.complaints(), [])

    def test_a_run_without_requests_is_shown_too(self):
        trace = self.folder / "late.csv"
        trace.write_text("time_s,model,size\n100,bias,1\n")
        page, report, _ = self.make("--model", "bias", "--arrivals", f"trace:{trace}", "--duration", "0.2", "--warmup", "0")
        self.assertEqual(report["models"][0]["scheduled"], 0)
        self.browser.open(page)
        self.assertEqual(self.visible(".verdict strong"), "NO VERDICT")
        self.assertIn("No request was due", self.visible("#model"))
        self.assertEqual(self.browser.complaints(), [])
