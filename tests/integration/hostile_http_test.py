"""Requests that are no HTTP, or lie about their bodies: cases 4 to 8, 12 and 13 of the list in the protocol notes."""
import gzip
import json
import os
import struct
import zlib

import numpy as np

from raw_http import GOOD_BODY, INFER, Connection, HostileTest, binary_body, chunked, floats, request

HEAD = b"POST /v2/models/bias/infer HTTP/1.1\r\nHost: x\r\n"
SIZE = len(GOOD_BODY)
X = {"name": "x", "shape": [1, 4], "datatype": "FP32"}


def sized(size, **more):
    """An input whose bytes follow the JSON part."""
    return {"inputs": [{**X, "parameters": {"binary_data_size": size}, **more}]}


class Framing(HostileTest):
    def refuse_bytes(self, cases, status=None):
        for label, data in cases.items():
            with self.subTest(label):
                self.assertRefused(self.send(data), status=status, label=label)

    def test_wrong_lengths_are_refused(self):
        values = [
            "-1", "+5", "5 5", "5, 5", "0x10", "1e3", f"{SIZE}abc", "abc", "", "5;q=1", "٣", "1.0", "NaN", "9" * 30,
            f"{2**64}", f"{2**64 + SIZE}", f"-{2**63}", "00x", "\x0b5"
        ]
        self.refuse_bytes({value: HEAD + f"Content-Length: {value}\r\n\r\n".encode() + GOOD_BODY for value in values},
                          {400, 413})
        good = b"Content-Length: %d\r\n" % SIZE
        self.refuse_bytes(
            {
                "two lengths": HEAD + good + b"Content-Length: 5\r\n\r\n" + GOOD_BODY,
                "one length twice": HEAD + good + good + b"\r\n" + GOOD_BODY
            }, 400)
        self.refuse_bytes(
            {
                "too large": HEAD + b"Content-Length: 300000000\r\n\r\n",
                "far too large": HEAD + b"Content-Length: %d\r\n\r\n" % 2**62
            }, 413)
        self.refuse_bytes({"none": HEAD + b"\r\n"}, {400, 411})

    def test_length_beside_chunks_is_refused(self):
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (SIZE, GOOD_BODY)
        codings = [
            "chunked", "Chunked", "chunked, chunked", "gzip", "gzip, chunked", "identity", "xchunked", "chunked;q=1",
            "", "chunked, gzip", "\"chunked\""
        ]
        self.refuse_bytes(
            {
                f"{coding} with a length": HEAD +
                f"Transfer-Encoding: {coding}\r\nContent-Length: {SIZE}\r\n\r\n".encode() + chunks for coding in codings
            }, 400)
        self.refuse_bytes(
            {
                coding: HEAD + f"Transfer-Encoding: {coding}\r\n\r\n".encode() + chunks
                for coding in codings if coding.lower() != "chunked"
            }, 400)
        self.refuse_bytes(
            {
                "twice": HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n" + chunks,
                "HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
            }, 400)

    def test_wrong_chunks_are_refused(self):
        sizes = [
            b"-2", b"-1", b"+2", b"0x2", b"", b" 2", b"2 2", b"g", b"ffffffffffffffff", b"7fffffffffffffff",
            b"fffffffffffffffff", b"1" * 5000, b"2;" + b"x" * 50_000, b"\x00", b"2\x00", b"\xff"
        ]
        self.refuse_bytes({f"chunk size {size[:20]}": chunked(b"2\r\n{ \r\n" + size + b"\r\nX") for size in sizes},
                          {400, 413})
        tails = {
            "no line end after the data": b"2\r\n{}2\r\n", "bare line feed": b"2\n{}\n0\n\n",
            "surplus data": b"2\r\n{}}\r\n0\r\n\r\n", "only a return": b"2\r{}\r0\r\r",
            "trailer without a colon": b"0\r\nnonsense\r\n\r\n", "trailer flood": b"0\r\n" + b"a: b\r\n" * 100_000,
            "endless trailer": b"0\r\na: " + b"b" * 500_000, "folded trailer": b"0\r\na: b\r\n c\r\n\r\n"
        }
        self.refuse_bytes({label: chunked(tail) for label, tail in tails.items()}, {400, 413, 431})
        self.refuse_bytes({"more than fits": chunked(b"20000000\r\n" + bytes(1000))}, 413)

    def test_tiny_chunks_are_read_and_a_flood_of_them_is_cut_short(self):
        def in_single_bytes(text):
            return b"".join(b"1;a=b\r\n%c\r\n" % byte for byte in text) + b"0\r\nTrailer: x\r\n\r\n"

        self.assertEqual(self.send(chunked(in_single_bytes(GOOD_BODY))).status, 200)
        filler = json.dumps(json.loads(GOOD_BODY) | {"filler": "x" * 500_000}).encode()
        self.assertRefused(self.send(chunked(in_single_bytes(filler))), "chunks", status=400)

    def test_wrong_request_lines_are_refused(self):
        cases = {
            "nothing": b"\r\n\r\n\r\n", "one word": b"GET\r\n\r\n", "no version": b"GET /v2\r\n\r\n",
            "HTTP/0.9": b"GET /v2 HTTP/0.9\r\n\r\n", "HTTP/1.2": b"GET /v2 HTTP/1.2\r\nHost: x\r\n\r\n",
            "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "small letters": b"GET /v2 http/1.1\r\nHost: x\r\n\r\n",
            "two spaces": b"GET  /v2 HTTP/1.1\r\nHost: x\r\n\r\n", "tab": b"GET\t/v2\tHTTP/1.1\r\nHost: x\r\n\r\n",
            "nul": b"GET /v2\x00 HTTP/1.1\r\nHost: x\r\n\r\n", "no path": b"GET HTTP/1.1\r\nHost: x\r\n\r\n",
            "control": b"GET /v2\x07 HTTP/1.1\r\nHost: x\r\n\r\n",
            "high byte": b"GET /v\xff HTTP/1.1\r\nHost: x\r\n\r\n",
            "unknown method": b"BREW /v2 HTTP/1.1\r\nHost: x\r\n\r\n",
            "method of symbols": b"G@T /v2 HTTP/1.1\r\nHost: x\r\n\r\n", "long method": b"G" * 100_000 +
            b" /v2 HTTP/1.1\r\n\r\n", "CONNECT": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
            "asterisk": b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", "trailing word": b"GET /v2 HTTP/1.1 x\r\nHost: x\r\n\r\n",
            "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
            "noise": os.urandom(4096) + b"\r\n\r\n", "relative": b"GET v2 HTTP/1.1\r\nHost: x\r\n\r\n"
        }
        self.refuse_bytes(cases)
        self.refuse_bytes(
            {
                "long path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                "endless path": b"GET /" + b"a" * 1_000_000
            }, {414, 431})

    def test_wrong_headers_are_refused(self):
        cases = {
            "no colon": b"Nonsense", "blank before the colon": b"A : b", "no name": b": b",
            "blank in the name": b"A b: c", "nul in a value": b"A: b\x00c", "nul in a name": b"A\x00: b",
            "folded": b"A: b\r\n c", "lone return": b"A: b\rC: d", "high byte in a name": b"\xff: b",
            "control in a value": b"A: \x07", "second host": b"Host: y"
        }
        self.refuse_bytes({label: request(GOOD_BODY, headers=[line]) for label, line in cases.items()}, 400)
        self.refuse_bytes({"no host": request(GOOD_BODY).replace(b"Host: x\r\n", b"")}, 400)
        self.refuse_bytes(
            {
                "many": request(GOOD_BODY, headers=[b"A%d: b" % i
                                                    for i in range(5000)]), "endless": HEAD + b"A: b\r\n" * 1_000_000,
                "long value": request(GOOD_BODY, headers=[b"A: " + b"b" * 200_000]), "long name": request(
                    GOOD_BODY, headers=[b"A" * 200_000 + b": b"
                                        ]), "line without an end": HEAD + b"A: " + b"b" * 5_000_000
            }, 431)

    def test_a_bad_request_after_a_good_one_is_refused(self):
        good = request(GOOD_BODY)
        for bad in (b"NONSENSE\r\n\r\n", HEAD + b"Content-Length: -1\r\n\r\n", chunked(b"-2\r\nX")):
            with self.connect() as connection:
                connection.send(good + good + bad + good)
                self.assertEqual([connection.answer().status for _ in range(2)], [200, 200])
                self.assertRefused(connection.answer())
                self.assertTrue(connection.ended(), "nothing after it is read as a request")
                self.assertEqual(connection.pending, b"")

    def test_many_requests_in_one_go_are_answered_in_order(self):
        with self.connect() as connection:
            connection.send(b"".join(request(GOOD_BODY.replace(b"good", b"%d" % i)) for i in range(500)))
            self.assertEqual([connection.answer().json()["id"] for _ in range(500)], [str(i) for i in range(500)])

    def test_wrong_methods_are_refused(self):
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "post", "GET"):
            answer = self.send(request(path=INFER, method=method))
            self.assertRefused(answer, status=405, label=method)
            self.assertEqual(answer.headers["Allow"], "POST")
        for method in ("TRACE", "CONNECT", "BREW", "get", "M-SEARCH"):
            answer = self.send(request(b"x", "/v2/models/stats", method))
            self.assertRefused(answer, method, status=405, label=method)
            self.assertEqual(answer.headers["Allow"], "GET, HEAD")
            self.assertRefused(self.send(request(b"", "/v2/missing", method)), status=404, label=method)


class Bodies(HostileTest):
    def test_wrong_json_lengths_are_refused(self):
        body, (name, right) = binary_body(sized(16), floats(1, 2, 3, 4))
        for value in ("-1", "abc", "", "1.5", "0x10", "1e2", "99999", str(2**63), str(2**64), "+10", f"{right} {right}",
                      f"{right},{right}", "0", str(int(right) - 1), str(int(right) + 1), str(len(body) + 1)):
            self.assertRefused(self.send(request(body, headers=[(name, value)])), status=400, label=value)
        self.assertRefused(self.send(request(body, headers=[(name, right), (name, "5")])), status=400)
        self.assertRefused(self.send(request(body)), status=400)
        self.assertEqual(self.send(request(body, headers=[(name, right)])).status, 200)
        self.assertEqual(self.send(request(GOOD_BODY, headers=[(name, SIZE)])).status, 200)

    def test_wrong_binary_sizes_are_refused(self):
        data = floats(1, 2, 3, 4)
        cases = {
            f"size {size!r}": (sized(size), data) for size in (0, 15, 17, 12, 20, -1, -16, 2**31, 2**63 - 1, 2**63,
                                                               2**64 - 16, 2**64, "16", 16.0, True, None, [], {})
        }
        cases |= {
            "surplus bytes": (sized(16), data + b"x"), "many surplus bytes": (sized(16), data * 1000),
            "missing bytes": (sized(16), data[:-1]), "no bytes": (sized(16), b""),
            "data as well": (sized(16, data=[1, 2, 3, 4]),
                             data), "bytes that nobody wants": ({"inputs": [{**X, "data": [1, 2, 3, 4]}]}, data),
            "a larger shape": (sized(16, shape=[2, 4]), data), "a smaller shape": (sized(32), data * 2),
            "another datatype": (sized(16, datatype="FP64"), data)
        }
        two = {
            "inputs": [{"name": name, "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": size}}
                       for name, size in (("a", 2**63), ("b", 2**63 + 128))]
        }
        cases |= {"sizes that overflow": (two, bytes(128))}
        for label, (document, *parts) in cases.items():
            body, header = binary_body(document, *parts)
            self.assertRefused(self.send(request(body, headers=[header])), status=400, label=label)

    def test_wrong_text_elements_are_refused(self):
        def element(text):
            return struct.pack("<I", len(text)) + text

        cases = {
            "length beyond the end": struct.pack("<I", 10) + b"abc",
            "largest length": struct.pack("<I", 2**32 - 1) + b"abc", "cut length": b"\x01\x00\x00",
            "one too few": element(b"a"), "one too many": element(b"a") * 3, "surplus byte": element(b"a") * 2 + b"x",
            "none": b"", "second beyond the end": element(b"a") + struct.pack("<I", 2**31)
        }
        for label, data in cases.items():
            body, header = binary_body(
                {
                    "inputs": [{
                        "name": "x", "shape": [1, 2], "datatype": "BYTES",
                        "parameters": {"binary_data_size": len(data)}
                    }]
                }, data)
            self.assertRefused(self.send(request(body, "/v2/models/identity_bytes/infer", headers=[header])),
                               "x",
                               status=400,
                               label=label)

    def test_text_that_is_not_utf8_goes_binary_only(self):
        data = struct.pack("<I", 2) + b"\xff\xfe"
        for binary in (True, False):
            body, header = binary_body(
                {
                    "inputs": [{
                        "name": "x", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}
                    }], "parameters": {"binary_data_output": binary}
                }, data)
            answer = self.send(request(body, "/v2/models/identity_bytes/infer", headers=[header]))
            if binary:
                self.assertTrue(answer.body.endswith(data), answer)
            else:
                self.assertRefused(answer, "UTF-8", status=400)

    def test_packed_bodies_are_bounded(self):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        megabyte = packer.compress(bytes(1 << 20)) + packer.flush(
            zlib.Z_FULL_FLUSH)  # Stands alone, so it can be repeated.
        for coding, header in (("gzip", gzip.compress(b"")[:10]), ("deflate", b"\x78\xda")):
            bomb = header + megabyte * 10_000  # 10 MB that unpack to 10 GB.
            used, before = self.server.cpu_seconds(), self.server.resident_bytes()
            for path in (INFER, "/v2/repository/index"):
                answer = self.send(request(bomb, path, headers=[("Content-Encoding", coding)]))
                self.assertRefused(answer, status={400, 413}, label=coding)
            self.assertLess(self.server.cpu_seconds() - used, 20)
            self.assertLess(self.server.resident_bytes() - before, 600 << 20)
        index = "/v2/repository/index"
        for coding, body in (("gzip", gzip.compress(b"{}")), ("br", b"{}")):
            answer = self.send(request(body, index, headers=[("Content-Encoding", coding)]))
            self.assertRefused(answer, coding, status=415)
        self.assertEqual(self.send(request(b"{}", index, headers=[("Content-Encoding", "identity")])).status, 200)
        twice = gzip.compress(gzip.compress(bytes(1 << 24)))
        self.assertRefused(self.send(request(twice, headers=[("Content-Encoding", "gzip")])), status=400)
        self.assertRefused(self.send(request(twice, headers=[("Content-Encoding", "gzip, gzip")])),
                           status=415)

    def test_packed_bodies_that_are_broken_are_refused(self):
        good = gzip.compress(GOOD_BODY)
        self.assertEqual(self.send(request(good, headers=[("Content-Encoding", "gzip")])).status, 200)
        cases = {f"cut at {size}": good[:size] for size in range(0, len(good), 7)}
        cases |= {
            "wrong checksum": good[:-8] + b"\0\0\0\0" + good[-4:], "wrong length": good[:-4] + b"\0\0\0\0",
            "surplus": good + b"x", "plain": GOOD_BODY,
            "damaged": good[:20] + bytes(byte ^ 0xFF
                                         for byte in good[20:30]) + good[30:], "deflate": zlib.compress(GOOD_BODY)
        }
        for label, packed in cases.items():
            self.assertRefused(self.send(request(packed, headers=[("Content-Encoding", "gzip")])),
                               status=400,
                               label=label)
        for coding in ("br", "compress", "zstd", "x", "gzip;q=1", "gzip gzip", "gzip, gzip"):
            answer = self.send(request(good, headers=[("Content-Encoding", coding)]))
            self.assertRefused(answer, "Content-Encoding", coding, status=415, label=coding)
            self.assertEqual(answer.headers["Accept-Encoding"], "gzip, deflate")
        for coding in ("GZIP", "Gzip"):
            self.assertEqual(self.send(request(good, headers=[("Content-Encoding", coding)])).status, 200, coding)
        self.assertEqual(self.send(request(GOOD_BODY, headers=[("Content-Encoding", "Identity")])).status, 200)
        twice = [("Content-Encoding", "gzip")] * 2
        self.assertRefused(self.send(request(good, headers=twice)), "content-encoding", status=400)
        body, (name, length) = binary_body(sized(16), floats(1, 2, 3, 4))
        packed = gzip.compress(body)
        self.assertEqual(self.send(request(packed, headers=[("Content-Encoding", "gzip"), (name, length)])).status, 200)
        self.assertRefused(self.send(request(packed, headers=[("Content-Encoding", "gzip"), (name, len(body) + 1)])),
                           status=400)

    def test_large_bodies_of_noise_are_refused(self):
        noise = np.random.default_rng(1).integers(0, 256, 4 << 20, np.uint8).tobytes()
        for data in (noise, b"[" * len(noise), b'{"inputs":' + b" " * len(noise), b'"' + b"a" * len(noise)):
            self.assertRefused(self.send(request(data)), status=400)


class Names(HostileTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*")
    NAMES = [
        "..", ".", "../bias", "..%2fbias", "%2e%2e", "%2e", "%2e%2e%2fbias", "..%5cbias", "bias%00", "%00", "bias%00x",
        "bias%20", "%20bias", "bias%09", "bias%0a", "bias%0d%0aX:y", "%", "%2", "%zz", "%g1", "%c0%ae%c0%ae", "%ff",
        "%ed%a0%80", "%7f", "bias%2f", "%2fetc%2fpasswd", "bias;x", "bias%3f", "BIAS", "b*", "missing", "n" * 256,
        "n" * 5000, "%e2%80%ae", "~root", "bias%25", "*", "." * 300, "con", "$(id)", "`id`", "'; drop table",
        "%F0%9F%98%80", "bias/versions"
    ]

    def test_names_that_mean_nothing_are_refused(self):
        for name in self.NAMES:
            if " " in name:
                name = name.replace(" ", "%20")
            for method, path in (("GET", f"/v2/models/{name}"), ("GET", f"/v2/models/{name}/config"),
                                 ("GET", f"/v2/models/{name}/stats"), ("POST", f"/v2/models/{name}/infer"),
                                 ("POST", f"/v2/repository/models/{name}/load"),
                                 ("POST",
                                  f"/v2/repository/models/{name}/unload"), ("GET", f"/v2/models/{name}/trace/setting")):
                body = GOOD_BODY if path.endswith("infer") else b""
                self.assertRefused(self.send(request(body, path, method)),
                                   status={400, 404, 405, 414},
                                   label=f"{method} {path[:100]}")
            answer = self.send(request(b"", f"/v2/models/{name}/ready", "GET"))
            self.assertIn(answer.status, {400, 404, 414, 503}, name[:100])
            answer = self.send(
                request(b'{"key": "/missing", "byte_size": 1}', f"/v2/systemsharedmemory/region/{name}/register"))
            self.assertIn(answer.status, {400, 404, 414}, name[:100])

    def test_versions_that_mean_nothing_are_refused(self):
        for version in ("0", "-1", "+1", "1.0", "1e0", "0x1", "%201", "1%20", "9" * 30, str(2**63), str(2**64 + 1),
                        "latest", "%EF%BC%91", "1%00", "..", "%2e%2e", "1%2f..", "2", "v1", "", "1;x", "1%0a"):
            for method, call in (("GET", ""), ("GET", "/config"), ("GET", "/stats"), ("POST", "/infer")):
                answer = self.send(
                    request(GOOD_BODY if call == "/infer" else b"", f"/v2/models/bias/versions/{version}{call}",
                            method))
                self.assertRefused(answer, status={400, 404}, label=f"{version}{call}")

    def test_readiness_tells_unknown_from_not_ready(self):
        for path, status in (("/v2/models/missing/ready", 404), ("/v2/models/missing/versions/1/ready", 404),
                             ("/v2/models/bias/versions/7/ready", 404), ("/v2/models/bias/versions/x/ready", 400),
                             ("/v2/models/bias/versions/-1/ready", 400)):
            self.assertRefused(self.send(request(b"", path, "GET")), status=status, label=path)
        self.assertEqual(self.send(request(b"", "/v2/models/bias/versions/1/ready", "GET")).status, 200)
        self.assertEqual(self.server.call("POST", "/v2/repository/models/spare/unload", b"").status, 200)
        self.assertRefused(self.send(request(b"", "/v2/models/spare/ready", "GET")), "spare", status=503)
        self.assertEqual(self.server.call("POST", "/v2/repository/models/spare/load", b"").status, 200)

    def test_the_metrics_port_takes_no_large_body(self):
        with Connection(self.server.metrics_port) as connection:
            answer = connection.send(request(b"", "/metrics", headers=[("Content-Length", 100_000)], length=False)).answer()
            self.assertRefused(answer, "65536", status=413)

    def test_paths_that_lead_nowhere_are_refused(self):
        for path in ("/", "//", "/v2/", "/v2//models/bias", "/v1/models/bias", "/v2/models/bias/", "/v2/models//infer",
                     "/../v2/health/live", "/v2/../v2/health/live", "/./v2", "/v2/models/bias/infer/x",
                     "/v2/repository", "/v2/models", "/%76%32x", "/v2%2fhealth%2flive", "/v2/health/live%00",
                     "/v2/health/..", "/v2/models/bias/versions/1/versions/1", "/uploads", "/etc/passwd",
                     "/v2/health/live/..%2f..", "/" + "a/" * 5000):
            self.assertRefused(self.send(request(b"", path, "GET")), status={400, 404, 405, 414}, label=path[:80])

    def test_queries_do_not_change_the_call(self):
        for query in ("?", "?a=b", "?%00", "?../..", "?" + "a" * 5000):
            self.assertEqual(self.send(request(b"", "/v2/health/live" + query, "GET")).status, 200, query[:30])

    def test_shared_memory_keys_that_mean_nothing_are_refused(self):
        path = "/v2/systemsharedmemory/region/region/register"
        for key in ("", "/", "..", "/..", "/../etc/passwd", "/a/b", "a\0b", "/a\0", "/" + "k" * 5000, "/tandem_none",
                    "/./x", " ", "\n", "/dev/null", "/proc/self/mem"):
            self.refuse_all({repr(key)[:60]: {"key": key, "offset": 0, "byte_size": 16}}, path)
        for member, values in {
                "offset": [-1, 2**64, "0", 1.5, [], 2**63],
                "byte_size": [-1, 2**64, "16", 1.5, [], 0, 2**63]
        }.items():
            for value in values:
                self.refuse_all(
                    {f"{member} {value!r}": {"key": "/tandem_none", "offset": 0, "byte_size": 16, member: value}}, path)
        self.refuse_all(
            {"no key": {"byte_size": 16}, "no size": {"key": "/x"}, "key of numbers": {"key": 3, "byte_size": 1}}, path)
