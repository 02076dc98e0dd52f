"""A model behind FastAPI, as a peer of `tandem bench`:
python fastapi_server.py --port P --model NAME --file F --threads N --workers N

As fast as this stack goes without leaving it: uvloop and httptools, no access log, the run on the event loop (a thread
pool costs more than a small run takes), orjson, bytes straight into and out of numpy, and several processes that take
connections from one socket, since one Python has one core.

POST /infer                    the bytes of the input, FP32, for the bytes of the first output: the least that is possible
POST /v2/models/NAME/infer     the Open Inference Protocol with binary tensors
"""
import argparse
import os
import socket

import numpy
import onnxruntime
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response


def load(file, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def make_app(session, model):
    app = FastAPI(openapi_url=None)
    run = session.run
    inputs = session.get_inputs()
    first = inputs[0].name
    shape = [size if isinstance(size, int) else 1 for size in inputs[0].shape]
    outputs = [output.name for output in session.get_outputs()]

    @app.get("/v2/health/ready")
    async def ready():
        return Response()

    @app.post("/infer")
    async def infer_raw(request: Request):
        tensor = numpy.frombuffer(await request.body(), numpy.float32).reshape(shape)
        return Response(run(None, {first: tensor})[0].tobytes(), media_type="application/octet-stream")

    @app.post(f"/v2/models/{model}/infer")
    async def infer(request: Request):
        body = await request.body()
        length = int(request.headers["inference-header-content-length"])
        head = orjson.loads(body[:length])
        tensors = {}
        for one in head["inputs"]:
            size = one["parameters"]["binary_data_size"]
            tensors[one["name"]] = numpy.frombuffer(body, numpy.float32, size // 4, length).reshape(one["shape"])
            length += size
        arrays = run(outputs, tensors)
        results = [array.tobytes() for array in arrays]
        answer = orjson.dumps({
            "model_name": model,
            "outputs": [{
                "name": name,
                "shape": array.shape,
                "datatype": "FP32",
                "parameters": {"binary_data_size": len(result)}
            } for name, array, result in zip(outputs, arrays, results)]
        })
        return Response(b"".join((answer, *results)),
                        media_type="application/octet-stream",
                        headers={"Inference-Header-Content-Length": str(len(answer))})

    return app


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    arguments = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", arguments.port), backlog=1024)
    for _ in range(arguments.workers - 1):
        if os.fork() == 0:
            break
    # Each process has a session of its own: its threads do not outlive a fork.
    app = make_app(load(arguments.file, arguments.threads), arguments.model)
    config = uvicorn.Config(app,
                            loop="uvloop",
                            http="httptools",
                            access_log=False,
                            log_level="warning",
                            lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
