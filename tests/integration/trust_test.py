"""Who is let in: TLS with and without client certificates, bearer tokens."""
import http.client
import socket
import ssl

import grpc
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2, service_pb2_grpc

import hostile_grpc_test
from certificates import CertificatesTest
from raw_http import GOOD_BODY
from tandem_server import PATIENCE, tandem, until


class TrustTest(CertificatesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tls_flags = ("--tls-cert", cls.certificates["server.pem"], "--tls-key", cls.certificates["server.key"])

    def https(self, server, context, path="/v2/models/bias/infer", body=GOOD_BODY, headers=None, port=None):
        connection = http.client.HTTPSConnection("localhost",
                                                 port or server.http_port,
                                                 context=context,
                                                 timeout=PATIENCE)
        try:
            connection.request("POST" if body else "GET", path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def channel(self, server, client=None, ca="ca"):
        keys = (self.certificates.read(f"{client}.key"), self.certificates.read(f"{client}.pem")) if client else (None,
                                                                                                                  None)
        channel = grpc.secure_channel(f"localhost:{server.grpc_port}",
                                      grpc.ssl_channel_credentials(self.certificates.read(f"{ca}.pem"), *keys))
        self.addCleanup(channel.close)
        return service_pb2_grpc.GRPCInferenceServiceStub(channel)

    def assertGrpcFails(self, stub):
        with self.assertRaises(grpc.RpcError) as caught:
            stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=5)
        self.assertIn(caught.exception.code(), {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class Tls(TrustTest):
    def test_all_ports_speak_tls(self):
        server = self.start(self.repository, *self.tls_flags, tls=True)
        status, body, _ = self.https(server, self.certificates.context())
        self.assertEqual(status, 200, body)
        self.assertEqual(
            self.https(server, self.certificates.context(), "/metrics", None, port=server.metrics_port)[0], 200)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.assertEqual(self.https(server, self.certificates.context(minimum=version, maximum=version))[0], 200)
        self.assertTrue(self.channel(server).ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE).live)
        self.assertGrpcFails(self.channel(server, ca="other"))
        with self.assertRaises(ssl.SSLError):
            self.https(server, ssl.create_default_context(cafile=self.certificates["other.pem"]))

    def test_tritonclient_over_tls(self):
        server = self.start(self.repository, *self.tls_flags, tls=True)
        client = tritonclient.http.InferenceServerClient(f"localhost:{server.http_port}",
                                                         ssl=True,
                                                         ssl_options={"ca_certs": str(self.certificates["ca.pem"])})
        self.assertTrue(client.is_server_ready())
        client.close()
        client = tritonclient.grpc.InferenceServerClient(f"localhost:{server.grpc_port}",
                                                         ssl=True,
                                                         root_certificates=str(self.certificates["ca.pem"]))
        self.assertTrue(client.is_server_ready())
        client.close()

    def test_long_headers_are_cut_off_under_tls_too(self):
        server = self.start(self.repository, *self.tls_flags, tls=True)
        context = self.certificates.context()
        context.set_alpn_protocols(["h2"])
        before = server.resident_bytes()
        for _ in range(10):
            with socket.create_connection(("localhost", server.grpc_port), timeout=PATIENCE) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as client:
                    try:
                        client.sendall(hostile_grpc_test.LongHeaders.begun(1_000_000))
                    except OSError:
                        pass
                    self.assertTrue(hostile_grpc_test.LongHeaders.is_cut_off(client))
        self.assertLess(server.resident_bytes() - before, 24 << 20)
        answer = self.channel(server).ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE)
        self.assertTrue(answer.live)

    def test_what_is_no_tls_is_let_go(self):
        server = self.start(self.repository, *self.tls_flags, "--header-timeout-secs", "0.5", tls=True)
        before = server.open_files()
        for data in (b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(1000),
                     bytes(range(256)) * 10, b"\x16\x03\x01"):
            for port in (server.http_port, server.metrics_port, server.grpc_port):
                with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
                    sock.sendall(data)
                    if port != server.grpc_port:  # gRPC waits for 10 s.
                        try:
                            while sock.recv(4096):
                                pass
                        except ConnectionResetError:
                            pass
        context = self.certificates.context(maximum=ssl.TLSVersion.TLSv1_1)
        with self.assertRaises((ssl.SSLError, OSError)):
            self.https(server, context)
        self.assertEqual(self.https(server, self.certificates.context())[0], 200)
        until(lambda: server.open_files() <= before + 1, "the descriptors are given back")

    def test_a_large_body_goes_through(self):
        server = self.start(self.repository, *self.tls_flags, tls=True)
        padded = GOOD_BODY[:-1] + b', "filler": "' + b"x" * 10_000_000 + b'"}'
        self.assertEqual(self.https(server, self.certificates.context(), body=padded)[0], 200)

    def test_only_clients_with_a_certificate_of_the_ca(self):
        server = self.start(self.repository, *self.tls_flags, "--tls-client-ca", self.certificates["ca.pem"], tls=True)
        self.assertEqual(self.https(server, self.certificates.context("client"))[0], 200)
        self.assertTrue(
            self.channel(server, "client").ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE).live)
        for client in (None, "stranger"):
            for port in (server.http_port, server.metrics_port):
                with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException), msg=f"{client} on {port}"):
                    self.https(server, self.certificates.context(client), port=port)
            self.assertGrpcFails(self.channel(server, client))

    def test_a_client_ca_lets_it_listen_to_everyone(self):
        server = self.start(self.repository,
                            *self.tls_flags,
                            "--tls-client-ca",
                            self.certificates["ca.pem"],
                            "--http-address",
                            "0.0.0.0",
                            tls=True)
        self.assertEqual(self.https(server, self.certificates.context("client"))[0], 200)

    def test_wrong_certificates_stop_the_start(self):
        base = ("serve", "--model-repository", self.repository, "--http-port", "0", "--grpc-port", "0",
                "--metrics-port", "0")
        junk = self.folder / "junk.pem"
        junk.write_text("no certificate")
        for flags in (("--tls-cert", junk, "--tls-key", self.certificates["server.key"]),
                      ("--tls-cert", self.certificates["server.pem"], "--tls-key",
                       junk), ("--tls-cert", self.certificates["server.pem"], "--tls-key",
                               self.certificates["client.key"]), (*self.tls_flags, "--tls-client-ca", junk)):
            done = tandem(*base, *flags)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertRegex(done.stderr, r"(?i)certificate|key|pem|tls")


class Tokens(TrustTest):
    def setUp(self):
        super().setUp()
        file = self.folder / "tokens"
        file.write_text("# who may ask\nfirst-token\n\nsecond.token=\n")
        self.server = self.start(self.repository,
                                 "--token-file",
                                 file,
                                 "--model-control-mode",
                                 "explicit",
                                 "--load-model",
                                 "*",
                                 wait=False)
        self.server.wait_ports()
        until(lambda: self.server.call("GET", "/v2/health/ready").status == 200, "the server is ready")

    def call(self, authorization=None, path="/v2/models/bias/infer", body=GOOD_BODY, port=None):
        headers = {"Authorization": authorization} if authorization is not None else {}
        return self.server.call("POST" if body is not None else "GET", path, body, headers, port)

    def test_http_needs_a_token(self):
        for token in ("first-token", "second.token="):
            self.assertEqual(self.call(f"Bearer {token}").status, 200)
            self.assertEqual(self.call(f"bearer {token}").status, 200)
            self.assertEqual(self.call(f"Bearer {token}", "/metrics", None, self.server.metrics_port).status, 200)
        wrong = [
            None, "", "Bearer", "Bearer ", "Bearer first-toke", "Bearer first-token2", "Bearer FIRST-TOKEN",
            "first-token", "Basic first-token", "Bearer # who may ask", "Bearer " + "x" * 10_000
        ]
        for authorization in wrong:
            for path, body in (("/v2/models/bias/infer", GOOD_BODY), ("/v2", None), ("/v2/models/bias", None),
                               ("/metrics", None), ("/v2/repository/index", b""), ("/v2/repository/models/bias/unload",
                                                                                   b""), ("/v2/nonsense", None),
                               ("/v2/health/live/../../models/bias", None), ("/v2/logging", b"{}")):
                answer = self.call(authorization, path, body)
                self.assertEqual(answer.status, 401, f"{authorization} {path}: {answer}")
                self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
                self.assertIn("token", answer.error)
            self.assertEqual(self.call(authorization, "/metrics", None, self.server.metrics_port).status, 401)
        for path in ("/v2/health/live", "/v2/health/ready"):
            self.assertEqual(self.call(None, path, None).status, 200)

    def test_a_large_body_without_a_token_is_refused_before_it_comes(self):
        with socket.create_connection(("127.0.0.1", self.server.http_port), timeout=PATIENCE) as sock:
            sock.sendall(b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
            self.assertIn(b" 401 ", sock.recv(4096))

    def test_grpc_needs_a_token(self):
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            right = [("authorization", "Bearer first-token")]
            self.assertEqual(
                stub.ServerMetadata(service_pb2.ServerMetadataRequest(), metadata=right, timeout=PATIENCE).name,
                "tandem")
            for metadata in ([], [("authorization", "Bearer nonsense")], [("authorization", "")], [("authorization",
                                                                                                    "first-token")]):
                calls = [
                    lambda m=metadata: stub.ServerMetadata(
                        service_pb2.ServerMetadataRequest(), metadata=m, timeout=PATIENCE), lambda m=metadata: stub.
                    ModelInfer(service_pb2.ModelInferRequest(model_name="bias"), metadata=m, timeout=PATIENCE),
                    lambda m=metadata: stub.RepositoryModelUnload(
                        service_pb2.RepositoryModelUnloadRequest(model_name="bias"), metadata=m, timeout=PATIENCE),
                    lambda m=metadata: list(
                        stub.ModelStreamInfer(
                            iter([service_pb2.ModelInferRequest(model_name="bias")]), metadata=m, timeout=PATIENCE))
                ]
                for call in calls:
                    with self.assertRaises(grpc.RpcError) as caught:
                        call()
                    self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
            self.assertTrue(stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE).live)
            self.assertTrue(stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=PATIENCE).ready)

    def test_tritonclient_with_a_token(self):
        headers = {"authorization": "Bearer first-token"}
        with tritonclient.http.InferenceServerClient(self.server.http) as client:
            self.assertEqual(client.get_server_metadata(headers=headers)["name"], "tandem")
            with self.assertRaises(Exception):
                client.get_server_metadata()
        with tritonclient.grpc.InferenceServerClient(self.server.grpc) as client:
            self.assertEqual(client.get_server_metadata(headers=headers).name, "tandem")

    def test_a_token_file_lets_it_listen_to_everyone(self):
        file = self.folder / "more"
        file.write_text("third\n")
        server = self.start(self.repository, "--token-file", file, "--http-address", "0.0.0.0")
        self.assertEqual(server.call("GET", "/v2").status, 401)

    def test_wrong_token_files_stop_the_start(self):
        for text in ("", "\n\n", "# only a comment\n", "three short words\n", "na/me token\n", "x" * 5000 + "\n"):
            file = self.folder / "wrong"
            file.write_text(text)
            done = tandem("serve", "--model-repository", self.repository, "--token-file", file, "--http-port", "0",
                          "--grpc-port", "0", "--metrics-port", "0")
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn("--token-file", done.stderr)
