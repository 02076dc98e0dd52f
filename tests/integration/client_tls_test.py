"""The commands that ask a server, over TLS: whom they trust, and what they say when they do not."""
import json

import models
from certificates import CertificatesTest
from tandem_server import tandem


class ClientTls(CertificatesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        models.place(cls.repository, "wide", models.identity("FP32", [1, 200_000]))
        (cls.shared / "tokens").write_text("open-sesame\n")

    def serve(self, certificate="server", *flags):
        self.server = self.start(self.repository, "--tls-cert", self.certificates[f"{certificate}.pem"], "--tls-key",
                                 self.certificates[f"{certificate}.key"], *flags, tls=True)
        return f"https://{self.server.http}"

    def ask(self, *arguments, url, code=0, ca="ca", **options):
        trust = ("--tls-ca", self.certificates[f"{ca}.pem"]) if ca else ()
        done = tandem(*arguments, "--url", url, *trust, "--timeout", "20", **options)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def test_models_and_infer_over_https(self):
        url = self.serve()
        for address in (url, url.replace("127.0.0.1", "localhost") + "/"):
            done = self.ask("models", "list", "--json", url=address)
            self.assertEqual({model["name"] for model in json.loads(done.stdout)}, {"bias", "wide"})
            self.assertEqual(done.stderr, "")
            self.assertIn("FP32", self.ask("models", "show", "bias", url=address).stdout)
            done = self.ask("infer", "bias", "--input", "x=[1, 2, 3, 4]", "--shape", "x:1,4", "--json", url=address)
            self.assertEqual(json.loads(done.stdout)["model_name"], "bias")
        done = self.ask("models", "list", url=url, ca=None, environment={"TANDEM_TLS_CA": str(self.certificates["ca.pem"])})
        self.assertEqual(done.stderr, "")

    def test_a_large_request_and_answer(self):
        url = self.serve()
        (output, ) = json.loads(self.ask("infer", "wide", "--json", url=url).stdout)["outputs"]
        self.assertEqual((output["shape"], len(output["data"])), ([1, 200_000], 200_000))

    def test_a_token_goes_over_tls(self):
        url = self.serve("server", "--token-file", self.shared / "tokens")
        self.ask("infer", "bias", "--token", "open-sesame", url=url)
        self.ask("models", "list", url=url, environment={"TANDEM_TOKEN": "open-sesame"})
        self.assertIn("token", self.ask("models", "list", "--token", "wrong", url=url, code=1).stderr)
        for token in ("two words", "line\nbreak", "näme"):
            self.assertIn("--token", self.ask("models", "list", "--token", token, url=url, code=2).stderr)

    def test_who_is_not_trusted_is_told_why(self):
        url = self.serve()
        for command in (("models", "list"), ("infer", "bias")):
            for ca in ("other", None):
                done = self.ask(*command, url=url, ca=ca, code=1)
                self.assertIn("certificate is not trusted", done.stderr)
                self.assertIn(url, done.stderr)
        done = self.ask("models", "list", "--tls-insecure", url=url, ca=None)
        self.assertIn("bias", done.stdout)
        self.assertRegex(done.stderr, r"^warning: --tls-insecure: .*not checked\n$")
        self.assertIn("has expired", self.ask("models", "list", url=self.serve("expired"), code=1).stderr)
        url = self.serve("elsewhere")
        self.assertIn("is not for '127.0.0.1'", self.ask("models", "list", url=url, code=1).stderr)
        done = self.ask("models", "list", url=url.replace("127.0.0.1", "localhost"), code=1)
        self.assertIn("is not for 'localhost'", done.stderr)
        self.ask("models", "list", "--tls-insecure", url=url)

    def test_a_client_certificate_where_one_is_wanted(self):
        url = self.serve("server", "--tls-client-ca", self.certificates["ca.pem"])

        def own(name):
            return ("--tls-cert", self.certificates[f"{name}.pem"], "--tls-key", self.certificates[f"{name}.key"])

        self.ask("infer", "bias", *own("client"), url=url)
        for flags in ((), own("stranger")):
            # What the server says may be lost when it closes at once.
            self.assertIn(url, self.ask("infer", "bias", *flags, url=url, code=1).stderr)

    def test_the_wrong_scheme_is_told(self):
        url = self.serve()
        done = self.ask("models", "list", url=url.replace("https", "http"), ca=None, code=1)
        self.assertIn("https://", done.stderr)
        plain = self.start(self.repository)
        done = self.ask("models", "list", url=f"https://{plain.http}", code=1)
        self.assertIn("does not speak TLS", done.stderr)
        done = self.ask("models", "list", url=f"grpcs://{plain.grpc}", ca=None, code=2)
        self.assertIn("grpcs", done.stderr)

    def test_files_that_cannot_be_used_are_named(self):
        url = "https://127.0.0.1:1"
        junk = self.folder / "junk.pem"
        junk.write_text("nonsense")
        server_cert, client_key = self.certificates["server.pem"], self.certificates["client.key"]
        for flags, word in ((("--tls-ca", junk), "junk.pem"), (("--tls-ca", "/nonexistent.pem"), "/nonexistent.pem"),
                            (("--tls-ca", "/dev/zero"), "/dev/zero"), (("--tls-cert", server_cert), "server.pem"),
                            (("--tls-key", client_key), "client.key"),
                            (("--tls-cert", server_cert, "--tls-key", client_key), "client.key"),
                            (("--tls-cert", junk, "--tls-key", client_key), "junk.pem")):
            for command in (("models", "list"), ("infer", "bias")):
                done = self.ask(*command, *flags, url=url, ca=None, code=2)
                self.assertIn(word, done.stderr, flags)
