#!/usr/bin/env python3
"""Sends one image to squeezenet over REST and over gRPC and shows that the answers are the same.

    pip install tritonclient[all]
    mkdir -p models/squeezenet/1
    cp /usr/share/libonnx-testdata/data/light/light_squeezenet.onnx models/squeezenet/1/model.onnx
    ./tandem serve --model-repository models
    python3 examples/infer_squeezenet.py
"""
import numpy as np
import tritonclient.grpc
import tritonclient.http

image = np.random.default_rng(7).random((1, 3, 224, 224), np.float32)


def ask(triton, address):
    client = triton.InferenceServerClient(address)
    pixels = triton.InferInput("data_0", list(image.shape), "FP32")
    pixels.set_data_from_numpy(image)
    # Microseconds; a request that still waits when they are over is refused and not computed.
    return client.infer("squeezenet", [pixels], timeout=500_000).as_numpy("softmaxout_1")


over_rest = ask(tritonclient.http, "localhost:8000")
over_grpc = ask(tritonclient.grpc, "localhost:8001")
print("answer", over_rest.shape, "- the same over gRPC:", np.array_equal(over_rest, over_grpc))
