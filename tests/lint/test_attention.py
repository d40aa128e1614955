"""Softmaxes of attention over samples or heads, by the syntax."""

import pytest

from truestep.lint import lint

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.weigh = nn.Softmax(dim=1)

    def forward(self, q, k, v, mask):
        {lines}
        return out
"""


def found(lines: str) -> list[str]:
    text = PROGRAM.format(lines=lines.replace("; ", "\n        "))
    return [one.message for one in lint(text) if one.rule == "softmax-wrong-dim"]


@pytest.mark.parametrize(
    "lines",
    [
        "scores = q @ k.transpose(1, 2); w = torch.softmax(scores, 0); out = w @ v",
        "w = F.softmax(q @ k.transpose(2, 3) / 8, dim=1); w = F.dropout(w, 0.1); out = w @ v",
        "scores = (q @ k.transpose(1, 2)).masked_fill(mask, -1e9); out = scores.softmax(0) @ v",
        "w = self.weigh(torch.einsum('bhid,bhjd->bhij', q, k)); out = torch.einsum('bhij,bhjd->bhid', w, v)",
    ],
)
def test_softmaxes_over_samples_or_heads_are_found(lines):
    assert len(found(lines)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        "out = (q @ k.transpose(1, 2)).softmax(2) @ v",
        "out = (q @ k.transpose(1, 2)).softmax(-1) @ v",
        "out = (q @ k.transpose(1, 2)).softmax(1) @ v",
        "out = (q @ k.transpose(-2, -1)).softmax(1) @ v",
        "out = (q @ k.transpose(0, 1)).softmax(0) @ v",
        "w = (q @ k.transpose(1, 2)).softmax(0); out = (w * v).sum(0)",
        "w = self.weigh(torch.einsum('bid,bjd->bij', q, k)); out = torch.einsum('bij,bjd->bid', w, v)",
        "w = self.weigh(torch.einsum('bhid,bhjd->bhij', q, k)); out = torch.einsum('bhij,bhjd->bid', w, v)",
        "w = torch.softmax(q, 0); out = w @ v",
    ],
)
def test_other_softmaxes_are_quiet(lines):
    assert found(lines) == []
