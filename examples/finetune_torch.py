#!/usr/bin/env python3
"""From a torch module to a model that is served and fine-tuned, and back: exports it, has it trained, fetches the result, loads
the weights into the module, and shows that it computes what the server computes.

    pip install torch onnx requests numpy
    ./tandem serve --model-repository models --data-root data --model-control-mode explicit
    python3 examples/finetune_torch.py --repository models --data-root data

The two folders are the server's. docs/pytorch.md explains the steps.
"""
import argparse
import io
import pathlib
import time
import uuid

import numpy as np
import onnx
import requests
import torch
from torch import nn

from finetune_requests import Refused, Server

SIDE, CLASSES = 16, 10


def make_module():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * (SIDE // 4)**2, CLASSES))  # yapf: disable


def make_pictures(count, seed):
    """Pictures of one of ten patterns each, under noise, and which."""
    patterns = np.random.default_rng(1).standard_normal((CLASSES, 1, SIDE, SIDE)).astype(np.float32)
    random = np.random.default_rng(seed)
    y = random.integers(0, CLASSES, count)
    return patterns[y] + random.standard_normal((count, 1, SIDE, SIDE), dtype=np.float32), y


def export(module, file):
    """As it stands, not optimised for inference: so weights keep the names that they have in the module."""
    torch.onnx.export(module.eval(), (torch.zeros(1, 1, SIDE, SIDE), ), str(file), dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["x"], output_names=["scores"],
                      dynamic_axes={"x": {0: "batch"}, "scores": {0: "batch"}})  # yapf: disable
    # The exporter lets weights that are equal be one, as those of all normalisations in a new module are. Each becomes its
    # own again. (A module that means to share weights would leave those out here.)
    model = onnx.load(file)
    weights = {one.name: one for one in model.graph.initializer}
    for node in [one for one in model.graph.node if one.op_type == "Identity" and one.input[0] in weights]:
        model.graph.initializer.add().CopyFrom(weights[node.input[0]])
        model.graph.initializer[-1].name = node.output[0]
        model.graph.node.remove(node)
    onnx.save(model, file)


def index(server):
    return server.call("POST", "/v2/repository/index", {}).json()


def serve(server, repository, name, module):
    """Puts the module into the repository as version 1, and waits until it is served."""
    file = repository / name / "1" / "model.onnx"
    if file.exists():
        raise Refused(f"{file} is there already; give another --model")
    aside = repository / f".{name}.partial"  # Renamed when it is whole: a server that polls sees all or nothing.
    (aside / "1").mkdir(parents=True, exist_ok=True)
    export(module, aside / "1" / "model.onnx")
    aside.rename(repository / name)
    try:
        server.call("POST", f"/v2/repository/models/{name}/load", {})
    except Refused as refused:
        if "mode 'poll'" not in str(refused):
            raise
        print("waiting for the server to find the model")
        while not any(one["name"] == name and one["state"] == "READY" for one in index(server)):
            time.sleep(1)
    print(f"{name} is served")


def fetch(server, job_id):
    """The trained model."""
    answer = server.call("GET", f"/v2/train/jobs/{job_id}/model")
    print(f"fetched {len(answer.content)} bytes")
    return onnx.load(io.BytesIO(answer.content))


def load_weights(module, model):
    """From the initializers of an ONNX graph, by their names."""
    weights = {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in model.graph.initializer}
    state = module.state_dict()
    # A counter of torch's own, which inference does not need and the graph does not have.
    missing = [name for name in state if name not in weights and not name.endswith("num_batches_tracked")]
    if missing:
        raise Refused(f"the trained model has no weights called {', '.join(missing)}")
    module.load_state_dict({name: weights.get(name, value) for name, value in state.items()})


def accuracy(module, x, y):
    with torch.no_grad():
        return (module.eval()(torch.from_numpy(x)).argmax(1).numpy() == y).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (%(default)s)")
    parser.add_argument("--token", help="bearer token, if the server wants one")
    parser.add_argument("--ca", help="certificates to trust (PEM), for https")
    parser.add_argument("--repository", type=pathlib.Path, required=True, help="the server's model repository")
    parser.add_argument("--data-root", type=pathlib.Path, required=True, help="the server's data root")
    parser.add_argument("--model", default="patterns", help="the name to serve it under (%(default)s)")
    parser.add_argument("--epochs", type=int, default=5)
    flags = parser.parse_args()
    server = Server(flags.url, flags.token, flags.ca)

    torch.manual_seed(0)
    module = make_module()
    x, y = make_pictures(200, seed=2)
    print(f"the module as it is made: {accuracy(module, x, y):.1%} right")
    serve(server, flags.repository, flags.model, module)

    train_x, train_y = make_pictures(1000, seed=3)
    np.savez(flags.data_root / f"{flags.model}.npz", x=train_x, y=train_y)
    done = server.train(
        {
            "model": flags.model, "data": f"{flags.model}.npz", "epochs": flags.epochs, "evaluation": {"split": 0.1},
            "update_batch_norm": True
        }, key=str(uuid.uuid4()))  # yapf: disable
    server.call("POST", f"/v2/train/jobs/{done['id']}/publish")

    load_weights(module, fetch(server, done["id"]))
    print(f"the module with the trained weights: {accuracy(module, x, y):.1%} right")
    scores, version = server.infer(flags.model, x)
    with torch.no_grad():
        difference = np.abs(scores - module(torch.from_numpy(x)).numpy()).max()
    print(f"version {version} on the server and the module differ by {difference:.1e} at most")
    if difference > 1e-3:
        raise Refused("the module does not compute what the server computes")


if __name__ == "__main__":
    try:
        main()
    except (Refused, requests.RequestException, OSError) as error:
        raise SystemExit(f"finetune_torch.py: {error}")
