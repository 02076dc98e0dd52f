#!/usr/bin/env python3
"""Says what kind of file each argument is, by asking a running tandem. See serve_magika.py for the model.

    pip install tritonclient[http]
    python3 examples/magika_filetype.py README.md /bin/sh
"""
import sys

import numpy as np
import tritonclient.http as triton

BLOCK, SIZE, PADDING = 4096, 1024, 256


def features(path):
    """The first and the last 1024 bytes without the blanks around the file, padded with 256."""
    with open(path, "rb") as file:
        first = file.read(BLOCK)
        file.seek(max(0, file.seek(0, 2) - BLOCK))
        last = file.read(BLOCK)
    tokens = np.full((1, 2 * SIZE), PADDING, np.int32)
    first, last = first.lstrip()[:SIZE], last.rstrip()[-SIZE:]
    tokens[0, : len(first)] = list(first)
    tokens[0, 2 * SIZE - len(last) :] = list(last)
    return tokens


client = triton.InferenceServerClient("localhost:8000")
for path in sys.argv[1:]:
    tokens = triton.InferInput("bytes", [1, 2 * SIZE], "INT32")
    tokens.set_data_from_numpy(features(path))
    best = triton.InferRequestedOutput("target_label", class_count=1)
    answer = client.infer("magika", [tokens], outputs=[best]).as_numpy("target_label")
    score, _, label = answer[0, 0].decode().split(":")
    print(f"{path}: {label} ({float(score):.1%})")
