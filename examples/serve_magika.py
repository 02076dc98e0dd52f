#!/usr/bin/env python3
"""Makes a model repository from the file-type classifier inside PyPI's `magika` package (Apache-2.0).

    pip install magika
    python3 examples/serve_magika.py models
    ./tandem serve --model-repository models

The labels go beside the model, so that the classification extension answers with names.
"""
import importlib.util
import json
import pathlib
import shutil
import sys

CONFIG = """\
# The batch is the first dimension of the graph; everything else is derived from it.
max_batch_size: 64
dynamic_batching {}
output { name: "target_label" label_filename: "labels.txt" }
parameters { key: "slo_ms" value { string_value: "100" } }
"""


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} REPOSITORY")
    package = importlib.util.find_spec("magika")  # Finds the folder without importing it.
    if package is None:
        sys.exit("magika is not installed: pip install magika")
    source = next(pathlib.Path(package.origin).parent.glob("models/standard_*/model.onnx")).parent
    labels = json.loads((source / "config.min.json").read_text())["target_labels_space"]

    model = pathlib.Path(sys.argv[1]) / "magika"
    (model / "1").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "model.onnx", model / "1" / "model.onnx")
    (model / "labels.txt").write_text("\n".join(labels) + "\n")
    (model / "config.pbtxt").write_text(CONFIG)
    print(f"{model}: {source.name}, {len(labels)} file types")


if __name__ == "__main__":
    main()
