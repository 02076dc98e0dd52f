"""Writes small ONNX models without any ONNX library.

    graph = Graph().input("x", "FP32", ["batch", 4]).output("y", "FP32", ["batch", 4]).node("Relu", ["x"], ["y"])
    write(folder / "model.onnx", graph)

Names and numbers are those of onnx.proto. Ready-made models stand in models.py.
"""
import struct

import numpy as np

ELEMENT_TYPES = {
    "FP32": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BYTES": 8, "BOOL": 9,
    "FP16": 10, "FP64": 11, "UINT32": 12, "UINT64": 13, "BF16": 16
}
NUMPY_TYPES = {
    "FP32": np.float32, "UINT8": np.uint8, "INT8": np.int8, "UINT16": np.uint16, "INT16": np.int16, "INT32": np.int32,
    "INT64": np.int64, "BOOL": np.bool_, "FP16": np.float16, "FP64": np.float64, "UINT32": np.uint32,
    "UINT64": np.uint64, "BYTES": np.object_
}
FLOAT, INT, STRING, TENSOR, GRAPH, INTS, SPARSE_TENSOR = 1, 2, 3, 4, 5, 7, 11


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, array, datatype=None):
    """A TensorProto with the data inside."""
    array = np.asarray(array)
    datatype = datatype or next(key for key, value in NUMPY_TYPES.items() if value == array.dtype.type)
    dims = b"".join(number(1, dim) for dim in array.shape)
    return dims + number(2, ELEMENT_TYPES[datatype]) + message(8, name) + message(9, array.tobytes())


def external_tensor(name, shape, location, length=None, offset=None):
    """An FP32 TensorProto whose data lies in the file `location`."""
    entries = {"location": location, "offset": offset, "length": length}
    data = b"".join(
        message(13,
                message(1, key) + message(2, str(value))) for key, value in entries.items() if value is not None)
    return b"".join(number(1, dim) for dim in shape) + number(2, 1) + message(8, name) + data + number(14, 1)


class Sparse(bytes):
    """A SparseTensorProto."""


def sparse_tensor(shape, values, indices):
    """Its values' name is the initializer's name."""
    return Sparse(message(1, values) + message(2, indices) + b"".join(number(3, dim) for dim in shape))


def attribute(name, value):
    if isinstance(value, Graph):
        body, kind = message(6, value.serialize()), GRAPH
    elif isinstance(value, Sparse):
        body, kind = message(22, value), SPARSE_TENSOR
    elif isinstance(value, bytes):
        body, kind = message(5, value), TENSOR
    elif isinstance(value, str):
        body, kind = message(4, value), STRING
    elif isinstance(value, float):
        body, kind = varint(2 << 3 | 5) + struct.pack("<f", value), FLOAT
    elif isinstance(value, int):
        body, kind = number(3, value), INT
    else:
        body, kind = b"".join(number(8, item) for item in value), INTS
    return message(1, name) + body + number(20, kind)


class Graph:
    def __init__(self, name="graph"):
        self.name = name
        self.nodes = self.initializers = self.inputs = self.outputs = b""

    @staticmethod
    def _value(name, datatype, dims):
        """`dims` None: nothing is said of the shape."""
        if dims is None:
            return message(1, name) + message(2, message(1, number(1, ELEMENT_TYPES[datatype])))
        shape = b"".join(message(1, number(1, dim) if isinstance(dim, int) else message(2, dim)) for dim in dims)
        return message(1, name) + message(2, message(1, number(1, ELEMENT_TYPES[datatype]) + message(2, shape)))

    def input(self, name, datatype, dims):
        self.inputs += message(11, self._value(name, datatype, dims))
        return self

    def output(self, name, datatype, dims):
        self.outputs += message(12, self._value(name, datatype, dims))
        return self

    def initializer(self, name, array, datatype=None):
        return self.raw_initializer(tensor(name, array, datatype))

    def raw_initializer(self, proto):
        self.initializers += message(15 if isinstance(proto, Sparse) else 5, proto)
        return self

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes += message(1, node(op, inputs, outputs, domain, **attributes))
        return self

    def serialize(self):
        return self.nodes + message(2, self.name) + self.initializers + self.inputs + self.outputs


def node(op, inputs, outputs, domain="", **attributes):
    """A NodeProto."""
    body = b"".join(message(1, name) for name in inputs) + b"".join(message(2, name) for name in outputs)
    body += message(4, op) + b"".join(message(5, attribute(key, value)) for key, value in attributes.items())
    return body + (message(7, domain) if domain else b"")


def function(name, calls, domain="local"):
    """A FunctionProto of one input and one output: operators of the same domain, one behind the other."""
    values = ["in", *(f"v{i}" for i in range(len(calls) - 1)), "out"]
    nodes = b"".join(message(7, node(op, [source], [target], domain)) for op, source, target in zip(calls, values, values[1:]))
    opsets = message(9, message(1, "") + number(2, 17)) + message(9, message(1, domain) + number(2, 1))
    return message(1, name) + message(4, "in") + message(5, "out") + nodes + opsets + message(10, domain)


def model_bytes(graph, ir_version=8, opset=17, functions=()):
    opsets = message(8, message(1, "") + number(2, opset))
    if functions:
        opsets += message(8, message(1, "local") + number(2, 1))
    return (number(1, ir_version) + message(7, graph.serialize()) + opsets +
            b"".join(message(25, each) for each in functions))


def write(path, graph, **versions):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model_bytes(graph, **versions))
    return path
