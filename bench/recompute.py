"""Gain and cost of `recompute=`: bytes that a forward pass keeps for the backward pass, and the time of a step.

A stack of transformer layers with dropout, in fp32 on the CPU; plain and recomputed steps in turns.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path

import torch
from torch import nn

import truestep as ts


class Deep(nn.Module):
    """Transformer layers on sequences of vectors."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True) for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def kept_bytes(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes of all storages, except those of parameters, that one forward pass keeps for the backward pass."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(x).square().mean()
        kept = sum(sizes.values())  # before the backward pass recomputes
        loss.backward()
    return kept


def step_s(model: nn.Module, x: torch.Tensor) -> float:
    begun = time.process_time()
    model(x).square().mean().backward()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    rows = []
    for layers, width, length in ((6, 128, 128), (24, 128, 128)):
        torch.manual_seed(0)
        plain = Deep(layers, width)
        again = copy.deepcopy(plain)
        ts.recompute(again, nn.TransformerEncoderLayer)
        x = torch.randn(8, length, width)
        times = [(step_s(plain, x), step_s(again, x)) for _ in range(chosen.rounds + 1)][1:]
        row = {
            "layers": layers,
            "width": width,
            "length": length,
            "plain_mib": round(kept_bytes(plain, x) / 2**20, 1),
            "recomputed_mib": round(kept_bytes(again, x) / 2**20, 1),
            "time_ratio": round(statistics.median(b / a for a, b in times), 2),
        }
        row["memory_ratio"] = round(row["plain_mib"] / row["recomputed_mib"], 1)
        rows.append(row)
        print(*(f"{name}={value}" for name, value in row.items()))
    if chosen.write is not None:
        chosen.write.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
