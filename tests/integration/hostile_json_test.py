"""Bodies that are no JSON, or the wrong JSON: cases 1, 2, 3, 9, 10 and 11 of the list in the protocol notes."""
import copy
import json

from raw_http import GOOD_BODY, INFER, HostileTest, request

DEPTH = 100_000
CONTROL_PATHS = [
    "/v2/repository/index", "/v2/repository/models/spare/load", "/v2/repository/models/missing/unload", "/v2/logging",
    "/v2/trace/setting", "/v2/models/bias/trace/setting", "/v2/systemsharedmemory/region/r/register"
]
BAD_UTF8 = {
    "lone continuation": b"\x80", "overlong slash": b"\xc0\xaf", "overlong nul": b"\xe0\x80\x80",
    "surrogate": b"\xed\xa0\x80", "above U+10FFFF": b"\xf4\x90\x80\x80", "cut sequence": b"\xe2\x82",
    "byte that is never used": b"\xff"
}


def body(**changes):
    return {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}], **changes}


def tensor(name="x", shape=(1, 4), datatype="FP32", data=(1, 2, 3, 4), **more):
    return {"inputs": [{"name": name, "shape": list(shape), "datatype": datatype, "data": data, **more}]}


def everywhere(value, path=()):
    """Every place in a document."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from everywhere(child, (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


class InvalidJson(HostileTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*")

    def test_every_truncation_is_refused(self):
        self.refuse_all([GOOD_BODY[:size] for size in range(len(GOOD_BODY))])

    def test_what_is_not_json_is_refused(self):
        good = GOOD_BODY.decode()
        cases = [
            "", " ", "\n", "nul", "{", "}", "[", "{}}", "{]", good + "x", good + good, good + ",", "\x00" + good,
            good + "\x00", "{'inputs': []}", "{inputs: []}", '{"inputs": [],}', "// comment\n" + good,
            "/* comment */" + good,
            good.replace("[1, 2, 3, 4]", "[1, 2, 3, 4,]"),
            good.replace("2,", "2,,"),
            good.replace('"good"', '"go\nod"'),
            good.replace('"good"', '"\\x41"'),
            good.replace('"good"', '"\\u12"'),
            good.replace('"good"', '"\\ud800"'),
            good.replace('"good"', '"\\udc00\\ud800"'),
            good.replace('"id":', '"id"')
        ]
        cases += [
            good.replace("[1, 2, 3, 4]", f"[1, 2, 3, {number}]")
            for number in ("01", "+1", ".5", "1.", "0x10", "1e", "1e+", "--1", "1_000", "1,5,", "nan", "inf", "NAN",
                           "Infinit", "-NaN?", "tru", "None", "1 2", "١")
        ]
        self.refuse_all([case.encode() for case in cases])
        self.refuse_all({"UTF-16": good.encode("utf-16"), "UTF-32": good.encode("utf-32")})
        for path in (INFER, *CONTROL_PATHS):
            self.refuse_all({"byte-order mark": b"\xef\xbb\xbf" + (GOOD_BODY if path == INFER else b"{}")}, path)

    def test_objects_with_endless_members_are_refused(self):
        many = {f"m{i}": 1 for i in range(200_000)}
        good = json.loads(GOOD_BODY)
        self.refuse_all({"request": {**good, **many}, "parameters": {**good, "parameters": many},
                         "input": {"inputs": [{**good["inputs"][0], **many}]},
                         "input's parameters": {"inputs": [{**good["inputs"][0], "parameters": many}]},
                         "output": {**good, "outputs": [{"name": "y", **many}]}}, words=["1024"])

    def test_the_body_must_be_an_object(self):
        for path in [INFER, *CONTROL_PATHS]:
            self.refuse_all([b"[]", b"null", b"true", b"3", b'"text"', b"[{}]"], path)

    def test_control_bodies_cost_little(self):
        limit = 1 << 20
        before = self.server.resident_bytes()
        for path in CONTROL_PATHS:
            if path.endswith("/load"):
                continue
            for text in (b'{"parameters":' + b"[" * limit, b'{"log_info": "' + b"x" * limit + b'"}', b"[" + b"0," * limit):
                self.refuse_all([text], path, status=413, words=[str(limit), "bytes"])
            self.refuse_all([b'{"a": [' + b"0," * 500_000 + b"0]}", b"[" + b"{}," * 300_000 + b"{}]",
                             b'{"a": "' + b"[" * 500_000 + b'"}'], path)
        load = "/v2/repository/models/spare/load"
        self.refuse_all([b"[" + b"{}," * 6_000_000 + b"{}]", b'{"parameters": [' + b"{}," * 6_000_000 + b"{}]}"], load)
        self.assertLess(self.server.resident_bytes() - before, 400 << 20)

    def test_control_bodies_that_are_announced_are_refused_unread(self):
        with self.connect() as connection:
            connection.send(b"POST /v2/logging HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
            self.assertRefused(connection.answer(), "2000000", "1048576", status=413)

    def test_control_messages_name_field_and_value(self):
        long = "v" * 5000
        for path, document, words in (
            ("/v2/repository/index", {"ready": "soon"}, ["'ready'", "soon"]),
            ("/v2/repository/models/spare/load", {"parameters": {"config": 17}}, ["'config'", "17"]),
            ("/v2/repository/models/spare/load", {"parameters": {"file:1/a": "?!", "config": "{}"}}, ["file:1/a", "?!"]),
            ("/v2/repository/models/spare/load", {"parameters": [1]}, ["parameters", "array"]),
            ("/v2/repository/models/spare/unload", {"parameters": {"unload_dependents": 3}}, ["unload_dependents", "3"]),
            ("/v2/logging", {"log_info": "maybe"}, ["'log_info'", "maybe"]),
            ("/v2/logging", {"log_info": 1.5}, ["'log_info'", "1.5"]),
            ("/v2/logging", {"log_format": long}, ["'log_format'", "v" * 90]),
            ("/v2/trace/setting", {"trace_rate": 1.5}, ["'trace_rate'", "1.5"]),
            ("/v2/trace/setting", {"trace_level": ["OFF", "OFF"]}, ["'trace_level'", "'OFF'"]),
            ("/v2/trace/setting", {"trace_level": ["OFF"] * 100_000}, ["'trace_level'|values"]),
            ("/v2/systemsharedmemory/region/r/register", {"key": 3, "byte_size": 1}, ["'key'", "3"]),
            ("/v2/systemsharedmemory/region/r/register", {"key": "/x", "byte_size": "9"}, ["'byte_size'", "9"])):
            self.refuse_all({f"{path} {document!r:.60}": document}, path, words=words)

    def test_control_bodies_must_be_json(self):
        for path in CONTROL_PATHS:
            self.refuse_all([
                b"{", b"{}}", b"nul", b'{"a": 01}', b'{"a" 1}', b"\xff", b'{"\xff": 1}', b"{} {}", b"// x\n{}",
                b'{"a": "\\ud800"}', b"{'a': 1}", b'{"a": 1,}', b"\x00"
            ], path)

    def test_bad_utf8_is_refused(self):
        for label, text in BAD_UTF8.items():
            places = {
                "id": GOOD_BODY.replace(b'"good"',
                                        b'"a' + text + b'"'), "name": GOOD_BODY.replace(b'"x"', b'"' + text + b'"'),
                "datatype": GOOD_BODY.replace(b'"FP32"', b'"' + text + b'"'),
                "key": GOOD_BODY.replace(b'"id"', b'"' + text + b'"'), "outside of strings": GOOD_BODY + text,
                "ignored member": GOOD_BODY[:-1] + b', "z": "' + text + b'"}'
            }
            self.refuse_all({f"{label} in {place}": case for place, case in places.items()})
            data = b'{"inputs":[{"name":"x","shape":[1,1],"datatype":"BYTES","data":["' + text + b'"]}]}'
            self.refuse_all({f"{label} in data": data}, "/v2/models/identity_bytes/infer")

    def test_endless_nesting_is_refused(self):
        good = json.loads(GOOD_BODY)
        good["outputs"] = [{"name": "y", "parameters": {}}]
        good["parameters"] = {"p": 1}
        good["inputs"][0]["parameters"] = {"p": 1}
        good["unknown"] = 1
        marker = "@nest@"
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            for deep in (opening * DEPTH + "1" + closing * DEPTH, opening * DEPTH, (opening + "[") * (DEPTH // 2)):
                cases = {
                    f"{deep[:6]}… at {path}": json.dumps(replaced(good, path, marker)).replace(f'"{marker}"',
                                                                                               deep).encode()
                    for path in everywhere(good)
                }
                self.refuse_all(cases)
                for path in CONTROL_PATHS:
                    keys = ("ready", "parameters", "log_info", "trace_level", "key", "unknown")
                    self.refuse_all(
                        {f"{deep[:6]}… at {key} of {path}": f'{{"{key}": {deep}}}'.encode()
                         for key in keys} | {f"{deep[:6]}… as body of {path}": deep.encode()}, path)
                for name in ("config", "file:1/model.onnx", "unload_dependents"):
                    inner = json.dumps({"parameters": {name: deep, "config": deep}}).encode()
                    self.refuse_all({f"{deep[:6]}… in the text of {name}": inner}, "/v2/repository/models/spare/load")

    def test_what_is_given_twice_is_refused(self):
        good = GOOD_BODY.decode()
        cases = [
            good[:-1] + ', "id": "other"}', good[:-1] + ', "inputs": []}', '{"inputs": [], ' + good[1:],
            good.replace('"name": "x"', '"name": "x", "name": "x"'),
            good.replace('"shape"', '"shape": [4], "shape"'),
            good.replace('"datatype"', '"datatype": "FP32", "datatype"'),
            good.replace('"data"', '"data": [1], "data"'), good[:-1] + ', "parameters": {"timeout": 1, "timeout": 2}}',
            good[:-1] + ', "parameters": {}, "parameters": {}}',
            good[:-1] + ', "outputs": [{"name": "y", "name": "y"}]}',
            good.replace('"id"', '"\\u0069d": "a", "id"')
        ]
        self.refuse_all([case.encode() for case in cases])
        one = json.loads(good)
        self.refuse_all(
            {
                "input": {"inputs": one["inputs"] * 2},
                "input of other data": {"inputs": one["inputs"] + tensor(data=[0] * 4)["inputs"]}
            },
            words=["'x'", "twice"])
        self.refuse_all({"output": {**one, "outputs": [{"name": "y"}] * 2}}, words=["'y'", "twice"])
        for path, text in (("/v2/repository/index",
                            '{"ready": true, "ready": false}'), ("/v2/logging", '{"log_info": true, "log_info": true}'),
                           ("/v2/trace/setting", '{"trace_rate": "1", "trace_rate": "2"}'),
                           ("/v2/repository/models/spare/load", '{"parameters": {"config": "{}", "config": "{}"}}')):
            self.refuse_all([text.encode()], path)

    def test_any_value_in_any_place_is_answered(self):
        good = {
            "id": "a", "parameters": {"priority": 1, "timeout": 0, "binary_data_output": False, "sequence_id": 3},
            "inputs": [{
                "name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"other": 1}, "data": [1, 2, 3, 4]
            }], "outputs": [{"name": "y", "parameters": {"classification": 1, "binary_data": False}}]
        }
        values = [
            None, True, 1, -1, 1.5, 2**63, 2**64, -2**63 - 1, "", "x", "\0", "x" * 100_000, [], {}, [[]], [None],
            {"": 1}
        ]
        raw = ["1e400", "-1e400", "NaN", "1" * 5000, "0." + "0" * 5000 + "1", "-0", "1E5"]
        for path in everywhere(good):
            for value in [*values, *(f"@{text}@" for text in raw)]:
                text = json.dumps(replaced(good, path, value))
                for number in raw:
                    text = text.replace(f'"@{number}@"', number)
                answer = self.send(request(text.encode()))
                label = f"{path}: {value!r:.60}"
                self.assertIsNotNone(answer, label)
                if answer.status != 200:
                    self.assertRefused(answer, status={400, 404, 503}, label=label)  # 503: a timeout of 1 µs


class WrongTensors(HostileTest):
    def test_data_that_does_not_fit_is_refused(self):
        wrong = {
            "too few": [1, 2, 3], "too many": [1, 2, 3, 4, 5], "none": [], "ragged": [[1, 2], [3], [4]],
            "too deep": [[[1, 2, 3, 4]]], "half nested": [[1, 2], 3,
                                                          4], "wrong way round": [[1], [2], [3],
                                                                                  [4]], "text": ["1", "2", "3", "4"],
            "null": [1, None, 3, 4], "boolean": [True, 2, 3, 4], "object": [{}, 2, 3, 4], "an object for all": {"0": 1},
            "a number for all": 4, "text for all": "1 2 3 4", "beyond FP32": [1e39, 2, 3, 4]
        }
        self.refuse_all({label: tensor(data=data) for label, data in wrong.items()}, words=["'x'|inputs[0]"])
        self.refuse_all({"missing": {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32"}]}}, words=["'x'"])

    def test_numbers_out_of_range_are_refused(self):
        limits = {
            "UINT8": (-1, 256), "UINT16": (-1, 65536), "UINT32": (-1, 2**32), "UINT64": (-1, 2**64),
            "INT8": (-129, 128), "INT16": (-2**15 - 1, 2**15), "INT32": (-2**31 - 1, 2**31),
            "INT64": (-2**63 - 1, 2**63), "BOOL": (-1, 2)
        }
        for datatype, (low, high) in limits.items():
            path = f"/v2/models/identity_{datatype.lower()}/infer"
            values = [low, high, 1.5, 1.0, "1", None, [], 10**30, *([] if datatype == "BOOL" else [True])]
            self.refuse_all(
                {f"{datatype} {value!r}": tensor(shape=(1, 1), datatype=datatype, data=[value]) for value in values},
                path)
            raw = [b"1e2", b"NaN", b"Infinity", b"-Infinity", b"-0.0", b"1" * 400]
            self.refuse_all(
                {
                    f"{datatype} {value[:20]}": json.dumps(tensor(
                        shape=(1, 1), datatype=datatype, data=["@"])).encode().replace(b'"@"', value) for value in raw
                }, path)
        for datatype in ("FP16", "BF16"):
            self.refuse_all({datatype: tensor(shape=(1, 1), datatype=datatype, data=[1])},
                            f"/v2/models/identity_{datatype.lower()}/infer")
        self.refuse_all([tensor(shape=(1, 1), datatype="BYTES", data=[value]) for value in (1, None, True, [], {})],
                        "/v2/models/identity_bytes/infer")

    def test_wrong_datatypes_and_inputs_are_refused(self):
        self.refuse_all(
            {
                name: tensor(datatype=name)
                for name in ("FP64", "INT32", "fp32", "FLOAT", "", "TYPE_FP32", "FP32 ", "BYTES", "x" * 5000)
            },
            words=["'x'|inputs[0]"])
        self.refuse_all({
            "no inputs": {"inputs": []}, "no member": {}, "null": {"inputs": None}, "only unknown": tensor(name="z"),
            "extra": {"inputs": tensor()["inputs"] + tensor(name="z")["inputs"]}, "empty name": tensor(name=""),
            "long name": tensor(name="n" * 100_000),
            "many": {"inputs": [tensor(name=str(i))["inputs"][0] for i in range(5000)]}
        })
        self.refuse_all({"unknown output": body(outputs=[{"name": "z"}])}, words=["'z'"])
        self.refuse_all({
            "empty output": body(outputs=[{"name": ""}]), "nameless output": body(outputs=[{}]),
            "text": body(outputs=["y"]), "many": body(outputs=[{"name": str(i)} for i in range(5000)])
        })
        two = {"inputs": [{"name": "a", "shape": [1, 16], "datatype": "INT32", "data": [0] * 16}]}
        self.refuse_all({"one of two": two}, "/v2/models/add_sub/infer", words=["'b'"])

    def test_wrong_shapes_are_refused(self):
        shapes = [[], [4], [1, 3], [1, 5], [1, 1, 4], [4, 1], [-1, 4], [1, -4], [-1, -4], [0, 4], [1, 0],
                  [2**63 - 1, 4], [2**62, 4], [2**32, 2**32], [2**31, 2**33], [1, 2**63 - 1], [1] * 33, [1] * 10_000,
                  [-2**63, 4], [33, 4], [2**31, 4], [3037000500, 3037000500]]
        self.refuse_all({f"{shape[:4]}…{len(shape)}": tensor(shape=shape)
                         for shape in shapes},
                        words=["'x'|inputs[0]"])
        self.refuse_all([
            json.dumps(tensor(shape=["@"])).encode().replace(b'"@"', dim)
            for dim in (b"1, 4.0", b"1, 4.5", b"1, 1e1", b'1, "4"', b"1, null", b"1, true", b"1, [4]",
                        b"9223372036854775808, 4", b"18446744073709551616, 4", b"-9223372036854775809, 4",
                        b"1, " + b"9" * 500, b"NaN, 4", b"1, {}")
        ])
        for shape in ([2**61, 8], [2**40, 2**40], [2**63 - 1, 2**63 - 1], [1, 2**60], [0, 2**63 - 1], [2**62, 0]):
            # Any shape fits this model but for its batch size.
            self.refuse_all({str(shape): tensor(shape=shape, datatype="INT64", data=[])},
                            "/v2/models/identity_int64/infer")

    def test_not_a_number_goes_in_and_out(self):
        body_text = json.dumps(tensor(shape=[4], data=["@"])).encode().replace(b'"@"', b"0, -Infinity, -NaN, Infinity")
        answer = self.send(request(body_text, "/v2/models/reciprocal/infer"))
        self.assertEqual(answer.status, 200, answer)
        data = answer.json()["outputs"][0]["data"]
        self.assertEqual([str(float(value)) for value in data], ["inf", "-0.0", "nan", "0.0"])

    def test_wrong_parameters_are_refused(self):
        wrong = {
            "priority": [-1, "1", 1.5, 2**64, None, [], True], "timeout": [-1, "1", 2**64, 1.5, [], {}],
            "slo_ms": [0, -1, "x", 1e300, [], True], "binary_data_output": ["yes", 1, None, []],
            "sequence_id": [-1, -2**63, True, 1.5], "sequence_start": [1, "x"], "triton_x": [1], "triton_enable_empty_final_response": [True]
        }
        for name, values in wrong.items():
            self.refuse_all({f"{name}: {value!r}": body(parameters={name: value}) for value in values}, words=[name])
        self.refuse_all({"a list": body(parameters=[]), "text": body(parameters="x")}, words=["parameters"])
        for name, values in {
                "classification": [-1, "3", 1.5, 2**64, [], None], "binary_data": ["yes", 1, []],
                "shared_memory_region": [1, None]
        }.items():
            self.refuse_all(
                {f"{name}: {value!r}": body(outputs=[{"name": "y", "parameters": {name: value}}]) for value in values},
                words=[name])
        for shared in ({"shared_memory_region": "none", "shared_memory_byte_size": 16},
                       {"shared_memory_region": "none"}, {"shared_memory_byte_size": 16}, {
                           "shared_memory_region": "none", "shared_memory_byte_size": 2**64 - 1,
                           "shared_memory_offset": 2**64 - 1
                       }, {"shared_memory_region": "none",
                           "shared_memory_byte_size": -1}, {"binary_data_size": 16, "shared_memory_region": "none"}):
            wanted = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": shared}]}
            self.refuse_all({str(shared): wanted})
        for slo in ("0", "-1", "abc", "NaN", "inf", "1e99", "1 2", "0x10", "5ms", ""):
            self.assertRefused(self.send(request(GOOD_BODY, headers=[("X-SLO-Ms", "60000"), ("X-SLO-Ms", slo)])), status=400)
            self.assertRefused(self.send(request(GOOD_BODY, headers=[("X-SLO-Ms", slo)])),
                               "X-SLO-Ms",
                               status=400,
                               label=slo)

    def test_a_run_that_fails_on_the_values_given_is_the_callers_mistake(self):
        for index in (4, -5, 2**62):
            self.refuse_all({str(index): tensor(name="i", shape=[1], datatype="INT64", data=[index])},
                            "/v2/models/gather/infer",
                            words=["gather"])
