"""What the server tells of requests afterwards: in words, as facts, and as a picture for Perfetto."""
import concurrent.futures
import json
import urllib.parse

import numpy as np
import tritonclient.grpc

import models
from raw_http import Connection, HostileTest, request, slow_body
from tandem_server import TandemTest, tandem, until
from training_jobs import TrainingTest


def body(model, steps, request_id, **parameters):
    """A request for a slow model, with an id."""
    bytes_ = slow_body(steps, **parameters).replace(b"/models/slow/", f"/models/{model}/".encode())
    head, rest = bytes_.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b": ")[1]) for line in head.split(b"\r\n")
                  if line.startswith(b"Inference-Header-Content-Length"))
    document = json.loads(rest[:length])
    text = json.dumps({"id": request_id, **document}).encode()
    return request(text + rest[length:],
                   f"/v2/models/{model}/infer",
                   headers=[("Inference-Header-Content-Length", str(len(text)))])


def check_trace(test, document):
    """A trace as Perfetto wants it; its events but for names."""
    test.assertEqual(document["displayTimeUnit"], "ms")
    begun, named, events = {}, set(), []
    for event in document["traceEvents"]:
        for field, kinds in (("name", str), ("ts", (int, float)), ("pid", int), ("tid", int)):
            test.assertIsInstance(event[field], kinds, event)
        match event["ph"]:
            case "M":
                named.add((event["name"], event["pid"], event["tid"]))
                continue
            case "X":
                test.assertGreaterEqual(event["dur"], 0)
                test.assertIn(("thread_name", event["pid"], event["tid"]), named)
            case "b":
                begun.setdefault((event["cat"], event["id"]), []).append(event["name"])
            case "e":
                test.assertEqual(begun[event["cat"], event["id"]].pop(), event["name"])
            case other:
                test.fail(f"phase {other}")
        test.assertIn("process_name", {name for name, pid, _ in named if pid == event["pid"]})
        events.append(event)
    test.assertFalse([names for names in begun.values() if names], "all that begins ends")
    return events


class Trace(HostileTest):
    """What is learnt of a model stays, so each test has one of its own."""
    flags = ("--threads", "2")

    @classmethod
    def fill(cls, repository):
        super().fill(repository)
        for name in ("slow", "refused", "waits", "drawn", "beside"):
            models.place(repository, name, models.slow())

    def story(self, name, status=200):
        answer = self.server.call("GET", f"/v2/trace/requests/{urllib.parse.quote(name, safe='')}")
        self.assertEqual(answer.status, status, answer.body)
        return answer.json()

    def hold(self, request_id="holder"):
        """A run of minutes that holds the device until its client goes."""
        holder = Connection(self.server.http_port)
        self.addCleanup(holder.close)
        holder.send(body("slow", 20_000_000, request_id))
        until(lambda: self.running(request_id), "the run has begun")
        return holder

    def running(self, request_id):
        answer = self.server.call("GET", f"/v2/trace/requests/{request_id}")
        return answer.status == 200 and answer.json()["runs"]

    def test_a_request_is_found_by_its_id_and_by_what_the_answer_calls_it(self):
        answer = self.send(body("waits", 10, "an id: 1 of 2", slo_ms=60_000))
        self.assertEqual(answer.status, 200)
        name = answer.headers["Tandem-Request"]
        self.assertRegex(name, r"^r-\d+$")
        story = self.story("an id: 1 of 2")
        self.assertEqual((story["request"], story["id"], story["model"], story["outcome"], story["slo"]),
                         (name, "an id: 1 of 2", "waits", "success", "met"))
        self.assertEqual(self.story(name)["id"], "an id: 1 of 2")
        self.assertEqual(self.story(name[2:])["id"], "an id: 1 of 2")
        self.assertEqual(story["deadline_us"], 60_000_000)
        (run, ) = story["runs"]
        self.assertEqual((run["model"], run["version"], run["requests"], run["failed"]), ("waits", "1", 1, False))
        self.assertTrue(0 <= run["began_us"] <= run["ended_us"] <= story["answered_us"], story)
        self.assertRegex(story["words"][0], "^answered after .*before its deadline$")

    def test_a_run_has_all_threads_and_those_that_waited_together_have_one_each(self):
        def runs(threads):
            return self.server.metric(f'tandem_run_threads_total{{model="beside",version="1",threads="{threads}"}}')

        # Long enough that it is told from runs over zeros.
        self.assertEqual(self.send(body("beside", 2000, "alone")).status, 200)
        self.assertEqual(self.story("alone")["runs"][0]["threads"], "all")
        self.assertEqual((runs("all"), runs("one")), (1, 0))
        holder = self.hold()
        waiting = [self.connect().send(body("beside", 2000, name)) for name in ("left", "right")]
        until(lambda: self.server.metric("tandem_queue_depth") == 2, "both wait")
        holder.close()
        for client in waiting:
            self.assertEqual(client.answer().status, 200)
        stories = [self.story(name) for name in ("left", "right")]
        self.assertEqual([story["runs"][0]["threads"] for story in stories], ["one", "one"])
        self.assertEqual((runs("all"), runs("one")), (1, 2))
        for story in stories:
            self.assertTrue(any("on one thread" in line for line in story["words"]), story["words"])
            self.assertTrue(any("of slow" in line for line in story["words"]), "what it waited for is told")

    def test_the_newest_of_several_with_one_id_counts(self):
        names = [self.send(body("waits", 10, "twice")).headers["Tandem-Request"] for _ in range(2)]
        self.assertEqual(self.story("twice")["request"], names[1])
        self.assertEqual(self.story(names[0])["id"], "twice")

    def test_words_alone_for_those_who_want_text(self):
        self.send(body("waits", 10, "plain"))
        answer = self.server.call("GET", "/v2/trace/requests/plain", headers={"Accept": "text/plain"})
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")
        lines = answer.body.decode().splitlines()
        self.assertRegex(lines[0], r"^request r-\d+ \(id 'plain'\) of model waits$")
        self.assertRegex(lines[1], "^  answered after")

    def test_an_id_cannot_move_the_cursor_or_forge_lines(self):
        name = self.send(body("waits", 10, "x\x1b[2J\n  forged")).headers["Tandem-Request"]
        self.assertEqual(self.story(name)["id"], "x\x1b[2J\n  forged")
        answer = self.server.call("GET", f"/v2/trace/requests/{name}", headers={"Accept": "text/plain"})
        printed = tandem("trace", name, "--url", f"http://{self.server.http}").stdout
        for text in (answer.body.decode(), printed):
            self.assertTrue(text.startswith(f"request {name} (id 'x\uFFFD[2J\uFFFD  forged') of model waits\n"), text)

    def test_a_name_of_the_servers_is_not_taken_by_a_client(self):
        name = self.send(body("waits", 10, "the first")).headers["Tandem-Request"]
        self.send(body("waits", 10, name))
        self.assertEqual(self.story(name)["id"], "the first")

    def test_what_waited_says_behind_whom(self):
        holder = self.hold("holder-1")
        waiting = Connection(self.server.http_port)
        self.addCleanup(waiting.close)
        waiting.send(body("waits", 10, "waiting"))
        story = until(lambda: self.found("waiting"), "it is known")
        self.assertIsNone(story["outcome"])
        self.assertIsNone(story["answered_us"])
        batch = self.story("holder-1")["runs"][0]["batch"]
        self.assertIn(f"batch {batch} of slow (1 request) was running", " ".join(story["words"]))
        holder.close()
        self.assertEqual(waiting.answer().status, 200)
        story = self.story("waiting")
        self.assertIn(batch, [run["batch"] for run in story["meanwhile"]])
        self.assertRegex(" ".join(story["words"]), r"waited [\d.]+ (ms|s|µs): ")
        self.assertIn("nobody waited for it any more", " ".join(self.story("holder-1")["words"]))

    def found(self, name):
        answer = self.server.call("GET", f"/v2/trace/requests/{name}")
        return answer.json() if answer.status == 200 and answer.json()["admission"] else None

    def test_what_was_refused_says_why(self):
        steps, slo_ms = self.long_run("refused", at_least_ms=200), 100
        for attempt in range(10):  # What was learnt more than a second ago refuses nobody.
            self.assertEqual(self.send(body("refused", steps, "learn")).status, 200)
            answer = self.send(body("refused", steps, "too-late", slo_ms=slo_ms))
            if answer.status == 503 and "cannot be met" in answer.error:
                break
        self.assertRefused(answer, "the deadline cannot be met", status=503)
        story = self.story(answer.headers["Tandem-Request"])
        self.assertEqual((story["id"], story["outcome"], story["slo"]), ("too-late", "rejected", "rejected"))
        self.assertEqual(story["admission"]["verdict"], "refused_not_in_time")
        self.assertGreater(story["admission"]["own_run_us"], story["admission"]["left_us"])
        self.assertRegex(" ".join(story["words"]),
                         r"refused at arrival: .* of work were ahead, its own run was expected to take up to .*, deadline in ")

    def long_run(self, model, at_least_ms):
        """So many steps take that long, of which what is around a run is a small part."""
        steps = 20_000
        while True:
            self.assertEqual(self.send(body(model, steps, "measure")).status, 200)
            (run, ) = self.story("measure")["runs"]
            if run["ended_us"] - run["began_us"] >= 1000 * at_least_ms:
                return steps
            steps *= 2

    def test_wrong_requests_are_told_of_too(self):
        answer = self.server.call("POST", "/v2/models/nobody/infer", {"id": "stray", "inputs": []})
        self.assertEqual(answer.status, 404)
        story = self.story(answer.headers["Tandem-Request"])
        self.assertEqual((story["id"], story["model"], story["outcome"]), ("stray", "", "invalid"))
        self.assertEqual(story["admission"]["verdict"], "refused_no_model")
        self.assertIn("refused at arrival: it asked for a model that is not served", story["words"])
        self.assertRegex(tandem("trace", "stray", "--url", f"http://{self.server.http}").stdout,
                         r"^request r-\d+ \(id 'stray'\)\n  refused ")
        answer = self.server.call("POST", "/v2/models/bias/versions/77/infer", {"id": "old", "inputs": []})
        self.assertEqual(answer.status, 404)
        story = self.story("old")
        self.assertEqual((story["model"], story["admission"]["verdict"]), ("bias", "refused_no_version"))

    def test_unknown_requests_are_404(self):
        self.send(body("waits", 10, "known"))
        for name in ("never-sent", "r-999999999", "999999999999999999999", "ünknown"):
            error = self.story(name, status=404)["error"]
            self.assertIn(f"no request '{name}'", error)
            self.assertIn("nothing was overwritten since the server started", error)
        self.assertEqual(self.server.call("GET", "/v2/trace/requests/known?by=id").status, 400)

    def test_grpc_names_requests_in_the_initial_metadata(self):
        import grpc
        from tritonclient.grpc import service_pb2, service_pb2_grpc
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            message = service_pb2.ModelInferRequest(model_name="bias", id="over-grpc")
            x = message.inputs.add(name="x", datatype="FP32", shape=[1, 4])
            x.contents.fp32_contents.extend([1, 2, 3, 4])
            _, call = stub.ModelInfer.with_call(message)
            name = dict(call.initial_metadata())["tandem-request"]
            self.assertEqual(self.story(name)["id"], "over-grpc")
            message.model_name = "nobody"
            with self.assertRaises(grpc.RpcError) as refused:
                stub.ModelInfer(message)
            name = dict(refused.exception.initial_metadata())["tandem-request"]
            self.assertEqual(self.story(name)["outcome"], "invalid")
        client = tritonclient.grpc.InferenceServerClient(self.server.grpc)
        self.addCleanup(client.close)
        tensor = tritonclient.grpc.InferInput("x", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.zeros((1, 4), np.float32))
        client.infer("bias", [tensor], request_id="by tritonclient")
        self.assertEqual(self.story("by tritonclient")["outcome"], "success")

    # ------------------------------------------------------------------ for Perfetto

    def test_a_window_is_a_trace(self):
        for i in range(5):
            self.assertEqual(self.send(body("drawn", 10, f"drawn-{i}")).status, 200)
        holder = self.hold("holder-3")
        answer = self.server.call("GET", "/v2/trace?seconds=60")
        self.assertEqual(answer.status, 200)
        events = check_trace(self, answer.json())
        requests = {event["args"]["id"]: event for event in events if event["ph"] == "b" and "args" in event
                    and "id" in event["args"]}
        self.assertTrue({f"drawn-{i}" for i in range(5)} <= requests.keys())
        self.assertEqual((requests["drawn-0"]["name"], requests["drawn-0"]["args"]["outcome"]), ("drawn", "success"))
        self.assertEqual(requests["holder-3"]["args"]["outcome"], "under way")
        runs = [event for event in events if event["ph"] == "X" and event["name"] == "drawn"]
        self.assertGreaterEqual(len(runs), 5)
        holder.close()
        for seconds in ("0", "-1", "3601", "nan", "x", ""):
            self.assertRefused(self.send(request(method="GET", path=f"/v2/trace?seconds={seconds}")), "seconds", status=400)
        self.assertRefused(self.send(request(method="GET", path="/v2/trace?minutes=1")), "minutes", status=400)

    def test_many_at_once_are_answered_or_told_to_ask_again(self):
        def ask(_):
            return self.server.call("GET", "/v2/trace?seconds=60")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(ask, range(128)))
        self.assertLessEqual({answer.status for answer in answers}, {200, 503})
        for answer in answers:
            if answer.status == 503:
                self.assertIn("traces are being made already", answer.error)
        for _ in range(10):  # Whoever was refused has taken no place.
            self.assertEqual(ask(None).status, 200)

    def test_the_command_writes_a_file_and_explains_requests(self):
        url = ("--url", f"http://{self.server.http}")
        self.send(body("waits", 10, "by command"))
        file = self.folder / "t.json"
        done = tandem("trace", "--seconds", "0.2", "-o", file, *url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("perfetto", done.stderr)
        check_trace(self, json.loads(file.read_text()))
        done = tandem("trace", "by command", *url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^request r-\d+ \(id 'by command'\) of model waits\n  answered after ")
        story = json.loads(tandem("trace", "by command", "--json", *url).stdout)
        self.assertEqual(story["id"], "by command")
        done = tandem("trace", "never-sent", *url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no request 'never-sent'", done.stderr)
        for arguments in (("--seconds", "0"), ("--seconds", "nan"), ("--json", ), ("x", "--seconds", "1"), ("x", "-o", "y")):
            self.assertEqual(tandem("trace", *arguments, *url).returncode, 2, arguments)
        done = tandem("trace", "--seconds", "0.1", "-o", self.folder, *url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)


class Records(TandemTest):
    def setUp(self):
        super().setUp()
        models.place(self.folder, "bias", models.bias())

    def ask(self, server, request_id):
        answer = server.call("POST", "/v2/models/bias/infer",
                             {"id": request_id,
                              "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})
        self.assertEqual(answer.status, 200)
        return answer

    def test_old_requests_are_overwritten(self):
        server = self.start(self.folder, "--trace-records", "1024")
        self.ask(server, "old")
        for _ in range(400):
            self.ask(server, "new")
        self.assertEqual(server.call("GET", "/v2/trace/requests/new").status, 200)
        answer = server.call("GET", "/v2/trace/requests/old")
        self.assertEqual(answer.status, 404)
        self.assertRegex(answer.error, r"reaches back [\d.]+ m?s \(1024 records; --trace-records sets how many\)")
        trace = server.call("GET", "/v2/trace?seconds=3600").json()
        self.assertLess(float(trace["otherData"]["covered_seconds"]), 3600)

    def test_nothing_is_recorded_when_it_is_off(self):
        server = self.start(self.folder, "--trace-records", "0")
        self.assertNotIn("Tandem-Request", self.ask(server, "x").headers)
        for path in ("/v2/trace", "/v2/trace/requests/x"):
            answer = server.call("GET", path)
            self.assertEqual(answer.status, 501)
            self.assertIn("--trace-records 0", answer.error)
        self.assertEqual(server.call("GET", "/v2/colocation").json()["recent"], [])
        done = tandem("trace", "--seconds", "100", "--url", f"http://{server.http}")
        self.assertEqual(done.returncode, 1, "before it waits")
        self.assertIn("--trace-records 0", done.stderr)

    def test_a_token_is_needed_as_for_every_call(self):
        tokens = self.folder / "tokens"
        tokens.write_text("secret\n")
        server = self.start(self.folder, "--token-file", tokens)
        for path in ("/v2/trace", "/v2/trace/requests/x"):
            self.assertEqual(server.call("GET", path).status, 401)
            self.assertNotEqual(server.call("GET", path, headers={"Authorization": "Bearer secret"}).status, 401)

    def test_a_senseless_number_of_records_is_refused(self):
        for count in ("-1", "1", "1023", "1048577", "many"):
            done = tandem("serve", "--model-repository", self.folder, "--trace-records", count)
            self.assertEqual(done.returncode, 2, count)
            self.assertIn("--trace-records", done.stderr)


class Training(TrainingTest):
    def test_decisions_about_training_are_told_with_the_request_and_by_themselves(self):
        models.place(self.repository, "slow", models.slow())
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation", "pause")
        job_id = self.submit(epochs=None, steps=100_000_000, evaluation=None)["id"]
        self.wait_step(job_id, 1)
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        client.send(body("slow", 20_000_000, "disturbs"))
        recent = until(lambda: (found := self.recent())[0]["training"] == "held" and found, "training is held")
        self.assertEqual((recent[0]["held_for"], recent[0]["trainers"]), ("requests", 1))
        self.assertRegex(recent[0]["reason"], r"^\d+ requests? under way$")
        self.assertEqual(recent[1]["training"], "runs")
        self.assertGreater(recent[1]["ago_us"], recent[0]["ago_us"])
        words = until(self.held, "the request tells of it")
        self.assertRegex(words, r"training was held from .* after its arrival to now because of \d+ requests? under way")
        events = check_trace(self, self.server.call("GET", "/v2/trace?seconds=600").json())
        self.assertTrue({"runs", "held: requests"} <= {event["name"] for event in events if event["pid"] == 3})
        client.close()
        until(lambda: self.recent()[0]["training"] == "runs", "training goes on")
        self.assertLessEqual(len(self.recent()), 16)

    def test_operators_of_a_trainer_are_in_the_trace_by_the_number_of_its_job(self):
        self.server = self.start(self.repository, "--state", self.state, "--data-root", self.data, "--colocation", "none")
        job_id = self.submit(epochs=None, steps=100_000_000, evaluation=None)["id"]
        self.wait_step(job_id, 20)
        file = self.folder / "t.json"

        def operators():
            done = tandem("trace", "--seconds", "1", "-o", file, "--url", f"http://{self.server.http}")
            self.assertEqual(done.returncode, 0, done.stderr)
            document = json.loads(file.read_text())
            events = check_trace(self, document)
            tracks = {event["args"]["name"]: event["tid"] for event in document["traceEvents"]
                      if event["name"] == "thread_name" and event["pid"] == 3}
            self.assertIn(f"job {job_id}", tracks)
            track = tracks[f"job {job_id}: operators"]
            return [event for event in events if (event["pid"], event["tid"]) == (3, track)]

        drawn = until(operators, "it was looked at its operators")
        self.assertLessEqual(len(drawn), 4096)
        self.assertLessEqual({"loss", "update"}, {event["args"]["kind"] for event in drawn})
        for event in drawn:
            self.assertIn(event["args"]["class"], ("light", "heavy"))
            self.assertTrue(event["name"].startswith(event["args"]["kind"]))
        for one, other in zip(drawn, drawn[1:]):
            self.assertLessEqual(one["ts"] + one["dur"], other["ts"] + 0.01, "one after the other")

    def test_who_is_paused_or_waits_for_a_turn_was_not_let_run(self):
        models.place(self.repository, "slow", models.slow())
        self.serve("--max-training-jobs", "2", "--job-policy", "fifo", "--training-threads", "1")
        first, second = (self.submit(epochs=None, steps=100_000_000, evaluation=None)["id"] for _ in range(2))
        until(lambda: (jobs := self.call("GET", "/turns")["jobs"]) and len(jobs) == 2 and jobs[0]["state"] != "loads"
              and jobs[1]["state"] == "waits", "one waits for its turn")
        until(lambda: "training was let run all the time: 1 trainer; 1 other waited for its turn" in self.words("beside"),
              "the other trains")
        for job_id in (first, second):
            self.call("POST", f"/jobs/{job_id}/pause")
        words = self.words("beside nobody")
        self.assertRegex(" ".join(words), r"training was held from .* before its arrival to now because a person paused it")
        self.assertNotIn("let run", " ".join(words))
        self.assertEqual((self.recent()[0]["held_for"], self.recent()[0]["trainers"]), ("paused", 2))
        document = self.server.call("GET", "/v2/trace?seconds=600").json()
        events = check_trace(self, document)
        self.assertLessEqual({"held: paused", "held: turn"}, {event["name"] for event in events if event["pid"] == 3})
        turns = [event for event in events if event["pid"] == 4]
        self.assertIn(f"job {first}", {event["name"] for event in turns})
        lanes = {event["tid"]: event["args"]["name"] for event in document["traceEvents"]
                 if event["name"] == "thread_name" and event["pid"] == 4}
        for event in turns:
            self.assertEqual(lanes[event["tid"]], f"lane {event['args']['lane']}")

    def words(self, request_id):
        client = Connection(self.server.http_port)
        self.addCleanup(client.close)
        self.assertEqual(client.send(body("slow", 10, request_id)).answer().status, 200)
        return self.server.call("GET", f"/v2/trace/requests/{urllib.parse.quote(request_id)}").json()["words"]

    def recent(self):
        return self.server.call("GET", "/v2/colocation").json()["recent"]

    def held(self):
        story = self.server.call("GET", "/v2/trace/requests/disturbs").json()
        return next((line for line in story["words"] if "training was held" in line), None)
