"""Whole programs, plain and under ``truestep run``, in turns: wall time and its ratio."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import gzip, os, sys
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
folder = Path(os.environ.get("TRUESTEP_DATA", "../shared/data")) / "fashion-mnist"
def read(name, skip):
    with gzip.open(folder / name) as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=skip)
x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[:{samples}].float() / 255
y = read("train-labels-idx1-ubyte.gz", 8).long()[:{samples}]
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2),
    nn.Linear(2704, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range({epochs}):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=12_800)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="write bench/results/whole_process.json")
    options = parser.parse_args()
    times: dict[str, list[float]] = {"plain": [], "supervised": []}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(PROGRAM.replace("{samples}", str(options.samples)).replace("{epochs}", str(options.epochs)))
        commands = {
            "plain": [sys.executable, str(script)],
            "supervised": [sys.executable, "-m", "truestep", "run", "--quiet", str(script)],
        }
        outputs = set()
        for _ in range(options.rounds):
            for name, command in commands.items():
                begun = time.perf_counter()
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
                times[name].append(time.perf_counter() - begun)
                outputs.add(done.stdout)
    ratio = statistics.median(s / p for s, p in zip(times["supervised"], times["plain"], strict=True))
    medians = {name: round(statistics.median(values), 3) for name, values in times.items()}
    print(f"plain {medians['plain']:.2f} s, supervised {medians['supervised']:.2f} s, ratio {ratio:.3f}")
    print("same output every time" if len(outputs) == 1 else "OUTPUTS DIFFER")
    if options.save:
        result = {
            "median_s": medians,
            "ratio": round(ratio, 4),
            "rounds": options.rounds,
            "same_output": len(outputs) == 1,
        }
        path = Path(__file__).parent / "results" / "whole_process.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
