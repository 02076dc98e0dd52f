"""The load generator over every transport: REST and gRPC, plain and TLS, with a token."""
import json

import numpy as np

import models
from certificates import CertificatesTest
from tandem_server import PATIENCE, tandem


class Transports(CertificatesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        models.place(cls.repository,
                     "extra",
                     models.optional_bias(),
                     config="""
            input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] }
            input { name: "bias" data_type: TYPE_FP32 dims: 4 optional: true }""")
        (cls.shared / "tokens").write_text("open-sesame\n")

    def serve(self, *flags, tls=False):
        if tls:
            flags += ("--tls-cert", self.certificates["server.pem"], "--tls-key", self.certificates["server.key"])
        self.server = self.start(self.repository, *flags, tls=tls)

    def run_load(self, url, *arguments, codes=(0, 3)):
        file = self.folder / "report.json"
        file.unlink(missing_ok=True)
        done = tandem("loadgen", "--arrivals", "constant", "--rate", "100", "--duration", "0.5", "--warmup", "0", "--json", file,
                      "--url", url, *arguments)
        self.assertIn(done.returncode, codes, f"{url} {arguments}\n{done.stdout}\n{done.stderr}")
        return json.loads(file.read_text()) if file.exists() else None, done

    def test_grpc_does_what_rest_does(self):
        self.serve()
        x, right, wrong = (self.folder / name for name in ("x.npy", "right.npz", "wrong.npz"))
        np.save(x, np.float32([[1, 2, 3, 4]]))
        np.savez(right, y=np.float32([[2, 3, 4, 5]]))
        np.savez(wrong, y=np.float32([[2, 3, 4, 6]]))
        own = ("--model", "bias", "--input", f"x=@{x}", "--slo-ms", "20000", "--priority", "1", "--channels", "2")
        for url in (f"grpc://{self.server.grpc}", f"http://{self.server.http}"):
            report, _ = self.run_load(url, *own, "--expect", right)
            model = report["models"][0]
            self.assertEqual((model["ok"], model["checked"], model["wrong_answers"]), (50, 50, 0), url)
            self.assertEqual(report["server"].split()[0], "tandem")
            report, done = self.run_load(url, *own, "--expect", wrong, codes=(1, ))
            self.assertEqual(report["models"][0]["failures"], {"wrong answer": 50})
            self.assertIn("element 3 is 5, expected 6", done.stdout)
        # Over gRPC the server's view is where one says that it is.
        url = f"grpc://{self.server.grpc}"
        self.assertEqual(self.run_load(url, "--model", "bias")[0]["server_view"], [])
        for port in (self.server.metrics_port, self.server.http_port):
            report, _ = self.run_load(url, "--model", "bias", "--metrics-url", f"http://127.0.0.1:{port}")
            self.assertEqual(report["server_view"][0]["requests"], 50)
        # Inputs that may be left out are known over gRPC, too.
        report, _ = self.run_load(url, "--model", "extra", "--batch", "4", "--expect", "first")
        self.assertEqual(report["models"][0]["ok"], 50)
        before = self.server.statistics("bias")["inference_count"]
        self.run_load(url, "--model", "bias", "--batch", "4")
        self.assertEqual(self.server.statistics("bias")["inference_count"] - before, 200)

    def test_a_mix_over_grpc(self):
        self.serve()
        spec = self.folder / "mix.json"
        spec.write_text(
            json.dumps({
                "url": f"grpc://{self.server.grpc}", "duration": 0.5, "warmup": 0,
                "models": [{"model": "bias", "users": 2}, {"model": "extra", "rate": 50, "inputs": {"bias": [1, 1, 1, 1]}}]
            }))
        file = self.folder / "report.json"
        done = tandem("loadgen", "--spec", spec, "--json", file)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        for model in json.loads(file.read_text())["models"]:
            self.assertEqual(model["ok"], model["scheduled"])
            self.assertGreater(model["ok"], 0)

    def test_the_slo_that_is_told_counts_on_both(self):
        self.serve()
        for url in (f"grpc://{self.server.grpc}", f"http://{self.server.http}"):
            report, _ = self.run_load(url, "--model", "bias", "--slo-ms", "0.001", codes=(1, 3))
            self.assertGreater(report["models"][0]["rejected"], 0, url)

    def test_tls_and_tokens(self):
        self.serve("--token-file", self.shared / "tokens", tls=True)
        trust = ("--tls-ca", self.certificates["ca.pem"])
        for scheme, place in (("https", self.server.http), ("grpcs", self.server.grpc)):
            url = f"{scheme}://{place}"
            metrics = ("--metrics-url", f"https://{self.server.http}")
            report, done = self.run_load(url, "--model", "bias", "--token", "open-sesame", *metrics, *trust)
            self.assertEqual(report["models"][0]["ok"], 50, url)
            self.assertEqual(report["server_view"][0]["requests"], 50, url)
            self.assertNotIn("open-sesame", json.dumps(report))
            _, done = self.run_load(url, "--model", "bias", "--token", "wrong", *trust, codes=(1, ))
            self.assertIn("token", done.stderr)
            _, done = self.run_load(url, "--model", "bias", "--token", "open-sesame", codes=(1, ))
            self.assertIn("certificate", done.stderr)
            report, done = self.run_load(url, "--model", "bias", "--token", "open-sesame", "--tls-insecure")
            self.assertEqual(report["models"][0]["ok"], 50, url)
            self.assertIn("--tls-insecure", done.stderr)
        done = tandem("loadgen", "--model", "bias", "--rate", "5", "--url", f"grpcs://{self.server.grpc}", "--tls-ca", "/no/such.pem")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("/no/such.pem", done.stderr)

    def test_a_client_certificate_where_one_is_wanted(self):
        self.serve("--tls-client-ca", self.certificates["ca.pem"], tls=True)
        own = ("--tls-cert", self.certificates["client.pem"], "--tls-key", self.certificates["client.key"])
        trust = ("--tls-ca", self.certificates["ca.pem"])
        for url in (f"https://{self.server.http}", f"grpcs://{self.server.grpc}"):
            report, _ = self.run_load(url, "--model", "bias", *trust, *own)
            self.assertEqual(report["models"][0]["ok"], 50, url)
            self.run_load(url, "--model", "bias", *trust, codes=(1, ))

    def test_a_server_that_dies_fails_the_run_over_grpc_too(self):
        self.serve()
        process = self.begin_load("--model", "bias", "--rate", 100, "--duration", 3, "--slo-ms", 20000, "--url",
                                  f"grpc://{self.server.grpc}")
        self.server.process.kill()
        output = process.stdout.read()
        # On a machine that is busy itself the run is invalid; the server has failed it all the same.
        self.assertIn(process.wait(PATIENCE), (1, 3), output)
        self.assertRegex(output, r"FAIL: \d+ of")

    def test_what_grpc_does_not_have_is_told(self):
        self.serve()
        url = f"grpc://{self.server.grpc}"
        _, done = self.run_load(url, "--model", "bias", "--format", "json", codes=(2, ))
        self.assertIn("--format json", done.stderr)
        _, done = self.run_load(url, "--model", "nobody", codes=(1, ))
        self.assertIn("nobody", done.stderr)
        # A server that speaks something else.
        _, done = self.run_load(f"grpc://{self.server.http}", "--model", "bias", codes=(1, ))
        self.assertIn("gRPC", done.stderr)
        _, done = self.run_load(f"http://{self.server.grpc}", "--model", "bias", codes=(1, ))
        self.assertIn(self.server.grpc, done.stderr)
