"""What every client asks beside inference. Mixed into the test classes of clients_test.py."""
import base64
import json

import numpy as np
from tritonclient.utils import InferenceServerException

import models
from onnx_file import model_bytes
from triton_clients import status_of

EXTENSIONS = {
    "binary_tensor_data", "classification", "model_configuration", "model_repository", "statistics",
    "system_shared_memory", "trace", "logging"
}


class ControlCalls:
    def refused(self, status, call, *arguments, **options):
        """The message of an error that must come."""
        with self.assertRaises(InferenceServerException) as caught:
            call(*arguments, **options)
        self.assertEqual(status_of(caught.exception), status, caught.exception)
        return caught.exception.message()

    def index(self):
        answer = self.client.get_model_repository_index()
        entries = answer.get("models", []) if isinstance(answer, dict) else answer
        return {(entry["name"], entry.get("version", "")): entry["state"] for entry in entries}

    def test_tells_that_it_is_alive_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("add_sub"))
        self.assertTrue(self.client.is_model_ready("add_sub", "1"))
        self.assertFalse(self.client.is_model_ready("add_sub", "2"))
        self.assertFalse(self.client.is_model_ready("missing"))

    def test_describes_itself(self):
        answer = self.client.get_server_metadata()
        self.assertEqual(answer["name"], "tandem")
        self.assertRegex(answer["version"], r"^\d+\.\d+\.\d+")
        self.assertLessEqual(EXTENSIONS, set(answer["extensions"]))

    def test_describes_a_model(self):
        for version in ("", "1"):
            answer = self.client.get_model_metadata("add_sub", version)
            self.assertEqual((answer["name"], answer["versions"]), ("add_sub", ["1"]))
            self.assertEqual(answer["platform"], "onnxruntime_onnx")
            tensors = {
                tensor["name"]: (tensor["datatype"], [int(dim) for dim in tensor["shape"]])
                for tensor in answer["inputs"] + answer["outputs"]
            }
            self.assertEqual(tensors, dict.fromkeys(("a", "b", "sum", "difference"), ("INT32", [-1, 16])))
        self.assertIn("missing", self.refused("404", self.client.get_model_metadata, "missing"))
        self.assertIn("7", self.refused("404", self.client.get_model_metadata, "add_sub", "7"))

    def test_shows_the_completed_configuration(self):
        answer = self.client.get_model_config("add_sub")
        config = answer.get("config", answer)
        self.assertEqual((config["name"], config["platform"]), ("add_sub", "onnxruntime_onnx"))
        self.assertGreater(config["max_batch_size"], 0)
        self.assertIn("dynamic_batching", config)
        self.assertEqual(
            {tensor["name"]: (tensor["data_type"], [int(dim) for dim in tensor["dims"]]) for tensor in config["input"]},
            dict.fromkeys(("a", "b"), ("TYPE_INT32", [16])))
        self.assertEqual([tensor["name"] for tensor in config["output"]], ["sum", "difference"])
        self.refused("404", self.client.get_model_config, "missing")

    def test_counts_inferences(self):
        def counted():
            (found, ) = self.client.get_inference_statistics("bias", "1")["model_stats"]
            return found

        before = counted()
        for _ in range(3):
            self.assertTrue(self.ask_bias(1.0))
        after = counted()
        self.assertEqual(
            set(after["inference_stats"]),
            {"success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"})

        def grown(*path):
            a, b = after, before
            for key in path:
                a, b = a.get(key, 0) if isinstance(a, dict) else a, b.get(key, 0) if isinstance(b, dict) else b
            return int(a) - int(b)

        self.assertEqual(grown("inference_count"), 3)
        self.assertEqual(grown("execution_count"), 3)
        self.assertEqual(grown("inference_stats", "success", "count"), 3)
        self.assertGreater(grown("inference_stats", "compute_infer", "ns"), 0)
        self.assertGreater(int(after["last_inference"]), 1_700_000_000_000)
        everyone = self.client.get_inference_statistics()["model_stats"]
        self.assertLessEqual({"add_sub", "bias", "mlp"}, {entry["name"] for entry in everyone})
        self.refused("404", self.client.get_inference_statistics, "missing")

    def test_loads_and_unloads(self):
        self.client.unload_model("spare")
        self.assertFalse(self.client.is_model_ready("spare"))
        self.assertEqual(self.index().get(("spare", "1")), "UNAVAILABLE")
        self.client.load_model("spare")
        self.assertTrue(self.client.is_model_ready("spare"))
        self.assertEqual(self.index()[("spare", "1")], "READY")
        self.client.unload_model("spare", unload_dependents=True)
        self.client.load_model("spare")

    def test_loads_with_another_configuration(self):
        self.client.load_model("spare", config=json.dumps({"max_batch_size": 3}))
        answer = self.client.get_model_config("spare")
        self.assertEqual(answer.get("config", answer)["max_batch_size"], 3)
        self.refused("400", self.client.load_model, "spare", config="{no json")
        self.refused("400", self.client.load_model, "spare", config=json.dumps({"max_batch_size": -1}))
        answer = self.client.get_model_config("spare")
        self.assertEqual(answer.get("config", answer)["max_batch_size"], 3, "a failed load changes nothing")
        self.client.load_model("spare")

    def test_loads_from_files_in_the_request(self):
        content = model_bytes(models.bias(40))
        name = "sent_" + type(self).__name__.lower()
        # tritonclient's HTTP form encodes the content itself; its signature says bytes for all four.
        self.client.load_model(name, config="{}", files={"file:1/model.onnx": content})
        self.assertTrue(self.client.is_model_ready(name))
        self.assertTrue(self.ask_bias(40.0, model=name))
        self.assertIn("config", self.refused("400", self.client.load_model, name, files={"file:1/model.onnx": content}))
        self.refused("400", self.client.load_model, name, config="{}", files={"file:1/model.onnx": b"no model"})
        self.assertTrue(self.ask_bias(40.0, model=name), "a failed load keeps the old")
        self.client.unload_model(name)
        self.assertFalse(self.client.is_model_ready(name))

    def test_tells_why_a_model_cannot_be_had(self):
        self.assertIn("missing", self.refused("404", self.client.load_model, "missing"))
        self.assertIn("missing", self.refused("404", self.client.unload_model, "missing"))
        self.assertTrue(self.refused("400", self.client.load_model, "broken"))
        self.assertEqual(self.index()[("broken", "1")], "UNAVAILABLE")

    def test_changes_log_settings(self):
        answer = self.client.get_log_settings()
        self.addCleanup(self.client.update_log_settings, {"log_verbose_level": 0, "log_info": True})
        self.assertLessEqual({"log_info", "log_warning", "log_error", "log_verbose_level", "log_format"},
                             set(answer.get("settings", answer)))
        answer = self.client.update_log_settings({"log_verbose_level": 1, "log_info": False})
        settings = answer.get("settings", answer)
        if self.client.is_grpc:
            self.assertEqual(settings["log_verbose_level"]["uint32_param"], 1)
            self.assertFalse(settings["log_info"]["bool_param"])
        else:
            self.assertEqual((settings["log_verbose_level"], settings["log_info"]), (1, False))
        self.assertIn("log_nothing", self.refused("400", self.client.update_log_settings, {"log_nothing": True}))
        if not self.client.is_grpc:  # The gRPC client refuses it by itself.
            self.refused("400", self.client.update_log_settings, {"log_info": "perhaps"})

    def test_changes_trace_settings(self):
        def values(answer):
            if not self.client.is_grpc:
                return {key: value if isinstance(value, list) else [value] for key, value in answer.items()}
            return {key: value.get("value", []) for key, value in answer["settings"].items()}

        self.addCleanup(self.client.update_trace_settings, settings={"trace_rate": None, "trace_level": None})
        self.addCleanup(self.client.update_trace_settings, model_name="bias", settings={"trace_rate": None})
        self.client.update_trace_settings(settings={"trace_rate": "500", "trace_level": ["TIMESTAMPS"]})
        self.client.update_trace_settings(model_name="bias", settings={"trace_rate": "7"})
        everywhere = values(self.client.get_trace_settings())
        self.assertEqual((everywhere["trace_rate"], everywhere["trace_level"]), (["500"], ["TIMESTAMPS"]))
        self.assertEqual(values(self.client.get_trace_settings("bias"))["trace_rate"], ["7"])
        answer = values(self.client.update_trace_settings(model_name="bias", settings={"trace_rate": None}))
        self.assertEqual(answer["trace_rate"], ["500"])
        self.refused("400", self.client.update_trace_settings, settings={"trace_rate": "often"})
        self.refused("400", self.client.update_trace_settings, settings={"trace_colour": "red"})
        self.refused("404", self.client.get_trace_settings, "missing")

    def test_has_no_cuda_shared_memory(self):
        answer = self.client.get_cuda_shared_memory_status()
        self.assertFalse(answer.get("regions") if isinstance(answer, dict) else answer)
        self.client.unregister_cuda_shared_memory()
        self.client.unregister_cuda_shared_memory("nothing")
        self.refused("501", self.client.register_cuda_shared_memory, "region", base64.b64encode(bytes(64)), 0, 64)

    def test_zz_made_every_call(self):
        """Runs last: what the client offers and no test above asked for."""
        missing = self.client.remote_calls() - self.client.called
        self.assertEqual(missing - {"close"}, set())

    def ask_bias(self, value, model="bias"):
        """Does `model` add `value`?"""
        x = np.arange(4, dtype=np.float32).reshape(1, 4)
        answer = self.client.infer(model, [self.client.input("x", x, "FP32")])
        return np.array_equal(answer.as_numpy("y"), x + np.float32(value))
