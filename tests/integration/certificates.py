"""Certificates for tests of TLS."""
import ssl
import subprocess

import models
from tandem_server import PATIENCE, TandemTest


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=PATIENCE)


class Certificates:
    """A CA, and certificates of it for a server and a client; and another CA with a client of its own. Of the first CA
    also a server certificate whose time is over ("expired") and one for another name ("elsewhere")."""
    def __init__(self, folder):
        self.folder = folder
        for ca in ("ca", "other"):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={ca}", "-addext", "keyUsage=critical,keyCertSign", "-keyout", self[f"{ca}.key"],
                    "-out", self[f"{ca}.pem"])
        here = "DNS:localhost,IP:127.0.0.1"
        over = ("-not_before", "20200101000000Z", "-not_after", "20200102000000Z")
        for name, ca, names, time in (("server", "ca", here, ("-days", "2")), ("client", "ca", here, ("-days", "2")),
                                      ("stranger", "other", here, ("-days", "2")), ("expired", "ca", here, over),
                                      ("elsewhere", "ca", "DNS:example.org", ("-days", "2"))):
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                    "-keyout", self[f"{name}.key"], "-out", self[f"{name}.csr"])
            (folder / "names").write_text(
                f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\nkeyUsage=digitalSignature\n")
            openssl("x509", "-req", *time, "-in", self[f"{name}.csr"], "-CA", self[f"{ca}.pem"], "-CAkey",
                    self[f"{ca}.key"], "-CAcreateserial", "-extfile", folder / "names", "-out", self[f"{name}.pem"])

    def __getitem__(self, name):
        return self.folder / name

    def read(self, name):
        return self[name].read_bytes()

    def context(self, client=None, minimum=None, maximum=None):
        context = ssl.create_default_context(cafile=self["ca.pem"])
        if client:
            context.load_cert_chain(self[f"{client}.pem"], self[f"{client}.key"])
        if maximum:
            context.minimum_version, context.maximum_version = minimum or ssl.TLSVersion.MINIMUM_SUPPORTED, maximum
        return context


class CertificatesTest(TandemTest):
    """Tests that share certificates, and a repository with the model `bias`."""
    @classmethod
    def setUpClass(cls):
        cls.shared = cls._folder(cls.addClassCleanup)
        cls.certificates = Certificates(cls.shared)
        cls.repository = cls.shared / "models"
        models.place(cls.repository, "bias", models.bias())
