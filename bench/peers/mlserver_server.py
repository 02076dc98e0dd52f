"""A model behind MLServer, as a peer of `tandem bench`:
python mlserver_server.py --port P --grpc-port G --model NAME --file F --threads N

A custom runtime on onnxruntime with the settings that suit a small model best: no worker processes (handing a request to
one costs more than a small run takes), no metrics server, no compression, no access log; uvloop and httptools, which
MLServer uses when they are there. MLServer reads tensors as JSON over REST, and as raw contents over gRPC.
"""
import argparse
import tempfile

import onnxruntime
import uvloop
from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelParameters
from mlserver.types import InferenceRequest, InferenceResponse


class OnnxModel(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.settings.parameters.extra["threads"]
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(self.settings.parameters.uri,
                                                     options,
                                                     providers=["CPUExecutionProvider"])
        self._outputs = [output.name for output in self._session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        tensors = {one.name: NumpyCodec.decode_input(one) for one in payload.inputs}
        arrays = self._session.run(self._outputs, tensors)
        return InferenceResponse(
            model_name=self.name,
            outputs=[NumpyCodec.encode_output(name, array) for name, array in zip(self._outputs, arrays)])


async def serve(arguments, folder):
    settings = Settings(debug=False,
                        host="127.0.0.1",
                        http_port=arguments.port,
                        grpc_port=arguments.grpc_port,
                        grpc_max_message_length=1 << 26,
                        parallel_workers=0,
                        metrics_endpoint=None,
                        metrics_dir=folder,
                        environments_dir=folder,
                        model_repository_root=folder,
                        gzip_enabled=False)
    model = ModelSettings(name=arguments.model,
                          implementation=OnnxModel,
                          parameters=ModelParameters(uri=arguments.file, extra={"threads": arguments.threads}))
    await MLServer(settings).start([model])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--grpc-port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tandem-mlserver-") as folder:
        uvloop.run(serve(arguments, folder))


if __name__ == "__main__":
    main()
