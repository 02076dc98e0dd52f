"""The models that the tests serve, and ONNX Runtime's own answers to them."""
import os
import pathlib
import shutil

import numpy as np
import onnxruntime

from onnx_file import ELEMENT_TYPES, Graph, model_bytes, write

# TANDEM_ROOT is set where the environment's packages lie in another root.
LIGHT_MODELS = pathlib.Path(os.environ.get("TANDEM_ROOT", "") + "/usr/share/libonnx-testdata/data/light")
DATATYPES = list(ELEMENT_TYPES)


def identity(datatype, dims=("batch", "n")):
    return Graph().input("x", datatype, dims).output("y", datatype, dims).node("Identity", ["x"], ["y"])


def add_sub():
    """sum = a + b, difference = a - b; INT32 [batch,16]."""
    graph = Graph()
    for name in ("a", "b"):
        graph.input(name, "INT32", ["batch", 16])
    for name, op in (("sum", "Add"), ("difference", "Sub")):
        graph.output(name, "INT32", ["batch", 16]).node(op, ["a", "b"], [name])
    return graph


def mlp(seed=1, hidden=48):
    """y = softmax(relu(x·W1 + b1)·W2 + b2); FP32 [batch,64] to [batch,10], with random weights."""
    random = np.random.default_rng(seed)
    graph = Graph().input("x", "FP32", ["batch", 64]).output("y", "FP32", ["batch", 10])
    for name, shape in {"w1": (64, hidden), "b1": (hidden, ), "w2": (hidden, 10), "b2": (10, )}.items():
        graph.initializer(name, random.standard_normal(shape, np.float32))
    return (graph.node("Gemm", ["x", "w1", "b1"], ["h"]).node("Relu", ["h"],
                                                              ["r"]).node("Gemm", ["r", "w2", "b2"],
                                                                          ["s"]).node("Softmax", ["s"], ["y"]))


def deep(seed=1, layers=40, width=1024):
    """y = tanh(…tanh(x·V))·W; FP32 [batch,64] to [batch,10]: most of its memory is between the two weights."""
    random = np.random.default_rng(seed)
    graph = Graph().input("x", "FP32", ["batch", 64]).output("y", "FP32", ["batch", 10])
    for name, shape in {"v": (64, width), "w": (width, 10)}.items():
        graph.initializer(name, random.standard_normal(shape, np.float32) * np.float32(0.05))
    graph.node("MatMul", ["x", "v"], ["h0"])
    for i in range(layers):
        graph.node("Tanh", [f"h{i}"], [f"h{i + 1}"])
    return graph.node("MatMul", [f"h{layers}", "w"], ["y"])


def convolution(seed=3):
    """y = mean of relu(x * W + b) per channel; FP32 [batch,3,32,32] to [batch,8], with random weights."""
    random = np.random.default_rng(seed)
    return (Graph().input("x", "FP32", ["batch", 3, 32, 32]).output("y", "FP32", ["batch", 8]).initializer(
        "w", random.standard_normal((8, 3, 5, 5), np.float32)).initializer("b", random.standard_normal(
            8, np.float32)).node("Conv", ["x", "w", "b"], ["c"],
                                 pads=[2, 2, 2, 2]).node("Relu", ["c"],
                                                         ["r"]).node("GlobalAveragePool", ["r"],
                                                                     ["p"]).node("Flatten", ["p"], ["y"]))


def bias(value=1.0):
    """y = x + value; FP32 [batch,4]. Tells one version from another."""
    return (Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4]).initializer(
        "value", np.float32(value)).node("Add", ["x", "value"], ["y"]))


def slow():
    """y = tanh(…tanh(x·W)·W…), `steps` (INT64 [1]) times; FP32 [1,256]. A run can be stopped between steps."""
    weights = np.random.default_rng(7).standard_normal((256, 256), np.float32) / 16
    body = (Graph("step").input("i", "INT64", []).input("going", "BOOL", []).input("in", "FP32", [1, 256]).output(
        "still", "BOOL", []).output("out", "FP32",
                                    [1, 256]).node("Identity", ["going"],
                                                   ["still"]).node("MatMul", ["in", "w"],
                                                                   ["product"]).node("Tanh", ["product"], ["out"]))
    return (Graph().input("x", "FP32", [1, 256]).input("steps", "INT64", [1]).output("y", "FP32", [1, 256]).initializer(
        "w",
        weights).initializer("true",
                             np.array(True)).initializer("axis",
                                                         np.array([0])).node("Squeeze", ["steps", "axis"],
                                                                             ["count"]).node("Loop",
                                                                                             ["count", "true", "x"],
                                                                                             ["y"],
                                                                                             body=body))


def reciprocal():
    """y = 1/x; FP32 and unbatched: gives infinities, and NaN for NaN."""
    return Graph().input("x", "FP32", [4]).output("y", "FP32", [4]).node("Reciprocal", ["x"], ["y"])


def divide(op="Div", datatype="INT32"):
    """y = x op z over integers [n]: a divisor of 0 is the client's to send."""
    return (Graph().input("x", datatype, ["n"]).input("z", datatype,
                                                      ["n"]).output("y", datatype, ["n"]).node(op, ["x", "z"], ["y"]))


def gather():
    """y = table[i] for `i` INT64 [n] within 0…3; another index makes the run fail."""
    return (Graph().input("i", "INT64", ["n"]).output("y", "FP32", ["n"]).initializer(
        "table", np.arange(4, dtype=np.float32)).node("Gather", ["table", "i"], ["y"]))


def expand():
    """y = one zero repeated to the shape in `to` (INT64 [2]): as much memory as the request says."""
    return (Graph().input("to", "INT64", [2]).output("y", "FP32",
                                                     ["m", "n"]).initializer("zero", np.zeros(
                                                         (1, 1), np.float32)).node("Expand", ["zero", "to"], ["y"]))


def nonzero():
    """y = the places of x that are not 0; the size of the answer depends on the values."""
    return Graph().input("x", "INT32", [8]).output("y", "INT64", [1, "found"]).node("NonZero", ["x"], ["y"])


def optional_bias():
    """y = x + bias, FP32 [batch,4]; `bias` [4] may be left out and is then {1,2,3,4}."""
    return (Graph().input("x", "FP32",
                          ["batch", 4]).input("bias", "FP32", [4]).output("y", "FP32", ["batch", 4]).initializer(
                              "bias", np.arange(1, 5, dtype=np.float32)).node("Add", ["x", "bias"], ["y"]))


def place(repository, name, graph, version=1, config=None, **files):
    """Puts a model (a Graph, or a path to copy) into a repository; `files` are further ones beside the config."""
    path = repository / name / str(version) / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(graph, Graph):
        write(path, graph)
    else:
        shutil.copyfile(graph, path)
    if config is not None:
        (repository / name / "config.pbtxt").write_text(config)
    for file, text in files.items():
        (repository / name / file.replace("_txt", ".txt")).write_text(text)
    return path


def onnxruntime_answers(path, inputs):
    """What ONNX Runtime itself computes, by output name. The release is the server's: 1.21.0."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = model_bytes(path) if isinstance(path, Graph) else str(path)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
