"""The four clients of tritonclient behind one face, so that each test is written once.

A Client calls methods by name, waits for asyncio's, asks gRPC for JSON where it can, and remembers what was called.
"""
import asyncio
import inspect

import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

METHOD_ARGUMENTS = {
    "deflate": {
        "http": {"request_compression_algorithm": "deflate", "response_compression_algorithm": "deflate"},
        "grpc": {"compression_algorithm": "deflate"}
    },
    "gzip": {
        "http": {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"},
        "grpc": {"compression_algorithm": "gzip"}
    },
}
# The plugin calls change the client alone; the body calls are static and tried with the raw body.
NOT_REMOTE = {"plugin", "register_plugin", "unregister_plugin"}


class Client:
    def __init__(self, kind, server, **options):
        self.is_grpc = kind.startswith("grpc")
        self.is_asyncio = kind.endswith("aio")
        self.protocol = "grpc" if self.is_grpc else "http"
        # The tensor classes of the asyncio modules are those of the others.
        self.tensors = tritonclient.grpc if self.is_grpc else tritonclient.http
        module = {
            "http": tritonclient.http, "grpc": tritonclient.grpc, "http.aio": tritonclient.http.aio,
            "grpc.aio": tritonclient.grpc.aio
        }[kind]
        url = server.grpc if self.is_grpc else server.http
        self.loop = asyncio.new_event_loop() if self.is_asyncio else None
        self.inner = self._wait(self._make(module, url, options)) if self.is_asyncio else (module.InferenceServerClient(
            url, **options))
        self.called = set()

    @staticmethod
    async def _make(module, url, options):
        return module.InferenceServerClient(url, **options)

    def _wait(self, value):
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def __getattr__(self, name):
        method = getattr(self.inner, name)

        def call(*arguments, **options):
            self.called.add(name)
            if self.is_grpc and "as_json" in inspect.signature(method).parameters:
                options.setdefault("as_json", True)
            return self._wait(method(*arguments, **options))

        return call

    def remote_calls(self):
        return {name
                for name, value in inspect.getmembers(self.inner, callable) if not name.startswith("_")} - NOT_REMOTE

    def close(self):
        self._wait(self.inner.close())
        if self.loop:
            self.loop.close()

    # ------------------------------------------------------------------ tensors

    def input(self, name, array, datatype, binary=True):
        made = self.tensors.InferInput(name, list(array.shape), datatype)
        if self.is_grpc:
            made.set_data_from_numpy(array)
        else:
            made.set_data_from_numpy(array, binary_data=binary)
        return made

    def shared_input(self, name, shape, datatype, region, size, offset=0):
        made = self.tensors.InferInput(name, shape, datatype)
        made.set_shared_memory(region, size, offset)
        return made

    def output(self, name, binary=True, classes=0, shared=None):
        made = (self.tensors.InferRequestedOutput(name, class_count=classes)
                if self.is_grpc else self.tensors.InferRequestedOutput(name, binary_data=binary, class_count=classes))
        if shared:
            made.set_shared_memory(*shared)
        return made

    def compression(self, algorithm):
        return METHOD_ARGUMENTS[algorithm][self.protocol]


def status_of(error: InferenceServerException):
    """The error's code as HTTP has it."""
    codes = {
        "StatusCode.INVALID_ARGUMENT": "400", "StatusCode.NOT_FOUND": "404", "StatusCode.UNAVAILABLE": "503",
        "StatusCode.UNIMPLEMENTED": "501", "StatusCode.FAILED_PRECONDITION": "409",
        "StatusCode.DEADLINE_EXCEEDED": "503"
    }
    return codes.get(error.status(), error.status())
