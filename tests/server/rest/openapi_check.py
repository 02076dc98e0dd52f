#!/usr/bin/env python3
"""Compares a running server with the OpenAPI document that it serves.

    openapi_check.py BASE_URL [--token TOKEN] [--under /v2/train]

Changes nothing on the server: calls that would are sent a body that they refuse, or a job that is not there. Needs a
model that is ready. With the package openapi-spec-validator the document and the answers are also checked against their
schemas; with --require-validator its absence is an error. Exits 1 and names every difference.
"""
import argparse
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

try:
    import openapi_schema_validator
    import openapi_spec_validator
except ImportError:
    openapi_schema_validator = openapi_spec_validator = None

METHODS = {"get", "put", "post", "delete", "options", "head", "patch"}
NOT_AN_OBJECT = b"[]"
NO_SUCH_JOB = "9223372036854775807"
NOBODYS_METHOD = "put"


class Server:
    def __init__(self, base, token):
        self.base = base.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method, path, body=None):
        """Status, headers and body of the answer."""
        request = urllib.request.Request(self.base + path, body, self.headers, method=method.upper())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()


def resolve(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def schema_faults(document, schema, value):
    if openapi_schema_validator is None:
        return []
    rooted = {"allOf": [schema], "components": document["components"]}
    validator = openapi_schema_validator.OAS30Validator(rooted)
    return [f"{'/'.join(map(str, fault.path)) or 'the answer'}: {fault.message[:200]}"
            for fault in validator.iter_errors(value)]


def check_answer(document, operation, status, headers, body):
    """What of an answer the document does not say. The operation's own words, no more."""
    if str(status) not in operation["responses"]:
        return [f"answers {status}, which is not documented: {body[:200]!r}"]
    response = resolve(document, operation["responses"][str(status)])
    faults = [f"lacks the header {name}" for name in response.get("headers", {})
              if name in ("Retry-After", "WWW-Authenticate", "Server-Timing") and name not in headers]
    content = response.get("content", {})
    kind = headers.get_content_type() if headers["Content-Type"] else None
    if not content:
        return faults + ([f"has a body of {len(body)} bytes, none is documented"] if body else [])
    if kind not in content:
        return faults + [f"is {kind}, documented are {', '.join(content)}"]
    if kind == "application/json":
        faults += schema_faults(document, content[kind]["schema"], json.loads(body))
    return faults


def query_of(document, operation):
    """What keeps an answer from going on for ever."""
    parameters = [resolve(document, parameter) for parameter in operation.get("parameters", [])]
    return "?follow=false" if any(p["in"] == "query" and p["name"] == "follow" for p in parameters) else ""


def zeros(metadata):
    """A request of zeros for a model, or None where JSON cannot carry its inputs."""
    inputs = []
    for tensor in metadata["inputs"]:
        if tensor["datatype"] in ("FP16", "BF16"):
            return None
        shape = [1 if dim < 0 else dim for dim in tensor["shape"]]
        count = 1
        for dim in shape:
            count *= dim
        zero = {"BYTES": "", "BOOL": False}.get(tensor["datatype"], 0)
        inputs.append({"name": tensor["name"], "datatype": tensor["datatype"], "shape": shape, "data": [zero] * count})
    return json.dumps({"id": "openapi", "inputs": inputs}).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base_url")
    parser.add_argument("--token")
    parser.add_argument("--require-validator", action="store_true")
    parser.add_argument("--under", default="/", help="only paths that begin so")
    arguments = parser.parse_args()
    if arguments.require_validator and openapi_spec_validator is None:
        sys.exit("openapi-spec-validator is not installed")
    server = Server(arguments.base_url, arguments.token)

    status, headers, body = server.call("get", "/v2/openapi.json")
    if status != 200 or headers.get_content_type() != "application/json":
        sys.exit(f"/v2/openapi.json: {status} {headers['Content-Type']}")
    document = json.loads(body)
    if openapi_spec_validator is not None:
        openapi_spec_validator.validate(document)

    status, _, body = server.call("post", "/v2/repository/index", b"")
    ready = [entry for entry in json.loads(body) if status == 200 and entry["state"] == "READY"]
    if not ready:
        sys.exit(f"the check needs a model that is ready; the repository index is {status} {body[:300]!r}")
    names = {"model": ready[0]["name"], "version": ready[0]["version"], "region": "openapi_check", "job": NO_SUCH_JOB,
             "request": "openapi"}
    _, _, body = server.call("get", f"/v2/models/{urllib.parse.quote(names['model'], safe='')}")
    valid = {"infer": zeros(json.loads(body)), "repositoryIndex": b""}
    valid["inferVersion"] = valid["infer"]
    valid["modelProfile"] = valid["modelProfileVersion"] = b'{"runs": 2}'

    _, _, body = server.call("get", "/v2/train/jobs?limit=1")
    jobs = json.loads(body).get("jobs", [])

    faults = []
    checked = 0
    paths = {pattern: item for pattern, item in document["paths"].items() if pattern.startswith(arguments.under)}
    for pattern, item in paths.items():
        operations = {method: item[method] for method in METHODS & item.keys()}
        for method, operation in operations.items():
            # Looking at a job changes nothing.
            named = {**names, "job": str(jobs[0]["id"])} if method == "get" and jobs else names
            path = pattern.format(**{name: urllib.parse.quote(value, safe="") for name, value in named.items()})
            bodies = [None] if method == "get" else [NOT_AN_OBJECT]
            if valid.get(operation["operationId"]) is not None:
                bodies.append(valid[operation["operationId"]])
            for sent in bodies:
                status, headers, body = server.call(method, path + query_of(document, operation), sent)
                found = check_answer(document, operation, status, headers, body)
                absent = ("{job}" in pattern or "{request}" in pattern) and b"no such path" not in body
                if status == 405 or (status == 404 and not absent):
                    found = [f"answers {status}: {body[:200]!r}"]
                faults += [f"{method.upper()} {pattern}: {fault}" for fault in found]
                checked += 1
        status, headers, _ = server.call(NOBODYS_METHOD, path)
        allowed = {name.strip().lower() for name in (headers["Allow"] or "").split(",")} - {"head"}
        if status != 405 or allowed != operations.keys():
            faults.append(f"{pattern}: {status}, Allow {sorted(allowed)}; documented are {sorted(operations)}")
    if (status := server.call("get", "/v2/no/such/path")[0]) != 404:
        faults.append(f"GET /v2/no/such/path: {status}")

    print("\n".join(faults + [f"{checked} calls over {len(paths)} paths, {len(faults)} differences"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
