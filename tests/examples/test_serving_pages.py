"""The commands of the pages on exports and servers, word by word: a program is trained, exported twice, and served."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"^    (?:\$ )?((?:python|truestep|curl) .+)$", re.MULTILINE)
PROGRAM = '''
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch
from sklearn.datasets import load_iris
from torch import nn

import truestep as ts

@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    export: Literal["onnx"] | None = None
    """Format."""

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)

settings = Settings.from_flags(out="runs/lab", max_epochs=30, progress=False)
run = ts.Run(settings)
x, y = load_iris(return_X_y=True)
flowers = ts.data.tensors(
    torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y), classes=("setosa", "versicolor", "virginica")
)
train_set, held_out = flowers.split(0.75, seed=0)
train, val = run.loader(train_set, 16, shuffle=True), run.loader(held_out, 16)
model = run.model(Net())
run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.02))
for epoch in run.epochs():
    for x, y in run.train(train, model):
        run.step(nn.functional.cross_entropy(model(x), y))
    run.save(metric=epoch, mode="max")
if settings.export:
    run.export(model, val, to=settings.export, best=True)
'''


def commands(page):
    """Return the commands of a page."""
    return COMMAND.findall((ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8"))


def saving():
    """Return the line of the page that saves batches."""
    return re.search(r"^torch\.save\(.*$", (ROOT / "docs/how-to/export.md").read_text(encoding="utf-8"), re.MULTILINE)[
        0
    ]


def asked(address, data, process):
    """Return the answer of a server that is starting."""
    ends = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, data.encode(), timeout=30) as answer:
                return json.load(answer)
        except (ConnectionError, urllib.error.URLError):
            if time.monotonic() > ends or process.poll() is not None:
                raise
            time.sleep(0.2)


@pytest.mark.program
def test_the_commands_of_the_pages_lead_from_a_training_to_an_answer(tmp_path, monkeypatch):
    for package in ("onnxruntime", "starlette", "uvicorn"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(f"{PROGRAM}{saving()}\n", encoding="utf-8")
    shutil.copy(ROOT / "examples/serve_onnx.py", tmp_path)
    subprocess.run([sys.executable, "train.py"], capture_output=True, check=True)

    at_the_end, of_the_checkpoint = commands("export")
    for command in (at_the_end, of_the_checkpoint):
        words = command.split()
        start = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "truestep"]
        done = subprocess.run([*start, *words[1:]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        config = json.loads(Path("runs/lab/export/onnx/config.json").read_text(encoding="utf-8"))
        assert config["weights"]["checkpoint"] == "step-000210"
        assert config["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}]
        shutil.move("runs/lab/export/onnx", f"kept-{words[0]}")
    shutil.copytree("kept-truestep", "runs/lab/export/onnx")

    serve, ask = commands("serving")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = serve.replace("8000", str(port)).split()
    process = subprocess.Popen([sys.executable, *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = re.fullmatch(r"curl -d '(.+)' localhost:8000(/\w+)", ask)
        answer = asked(f"http://127.0.0.1:{port}{found[2]}", found[1], process)
    finally:
        process.terminate()
        process.wait(30)
    assert answer["labels"] == ["setosa"]  # the flower of the page is the first of the table
    assert answer["probabilities"][0] > 0.9
