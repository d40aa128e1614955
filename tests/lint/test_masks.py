"""Masks that set scores to zero before a softmax, by the syntax."""

import pytest

from truestep.lint import lint

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q, k, v, mask=None, tokens=None, adj=None):
        scores = q @ k.transpose(-2, -1) / 8
        {lines}
        return weights @ v
"""


def found(lines: str) -> list[str]:
    text = PROGRAM.format(lines=lines.replace("; ", "\n        "))
    return [one.rule for one in lint(text) if one.rule == "masked-scores-in-softmax"]


@pytest.mark.parametrize(
    "lines",
    [
        "weights = F.softmax(scores.masked_fill(mask == 0, 0.0), dim=-1)",
        "scores = scores.masked_fill(~mask, 1e-9); weights = scores.softmax(-1)",
        "scores = scores.masked_fill(~mask, 0); weights = scores.softmax(-1)",
        "scores = scores.masked_fill_(tokens == 0, 0.0); weights = self.softmax(scores)",
        "scores = torch.where(mask, scores, 0.0); weights = torch.softmax(scores, dim=-1)",
        "scores = scores.where(mask, torch.zeros_like(scores)); weights = torch.softmax(scores, dim=-1)",
        "later = torch.ones(9, 9).triu(1).bool(); weights = scores.masked_fill(later, 0.0).softmax(-1)",
        "if mask is not None:;     scores = scores.masked_fill(mask == 0, 0.0); weights = F.softmax(scores, dim=-1)",
        "weights = F.softmax(scores * adj, dim=-1)",
        "scores = scores * torch.tril(torch.ones(9, 9)); weights = F.softmax(scores * mask, dim=-1)",
        "weights = F.log_softmax(scores.masked_fill(mask == 0, 0.0).float() / 2.0, dim=-1)",
    ],
)
def test_masks_of_zero_are_found(lines: str) -> None:
    assert found(lines) == ["masked-scores-in-softmax"]


@pytest.mark.parametrize(
    "lines",
    [
        "weights = F.softmax(scores.masked_fill(mask == 0, float('-inf')), dim=-1)",
        "weights = F.softmax(scores.masked_fill(mask == 0, -1e9), dim=-1)",
        "weights = F.softmax(scores.masked_fill(scores.isnan(), 0.0), dim=-1)",
        "weights = F.softmax(scores.masked_fill(mask[..., None], 0.0), dim=-1)",
        "weights = F.softmax(scores.masked_fill(mask.unsqueeze(-1), 0.0), dim=-1)",
        "scores = scores.masked_fill(mask, -1e9); scores = scores.masked_fill(mask.all(-1, keepdim=True), 0.0);"
        " weights = scores.softmax(-1)",
        "weights = F.softmax(scores, dim=-1).masked_fill(mask == 0, 0.0)",
        "weights = F.softmax(scores * mask, dim=-1) * mask; weights = weights / weights.sum(-1, keepdim=True)",
        "weights = F.softmax(scores * mask - 1e9 * (1 - mask), dim=-1)",
        "weights = F.softmax(scores * 0.5, dim=-1)",
        "keep = torch.rand_like(scores) < 0.9; weights = F.softmax(scores.masked_fill(keep, 0.0), dim=-1)",
        "weights = F.softmax(scores.masked_fill(torch.eye(9).bool(), 0.0), dim=-1)",
        "weights = F.softmax(scores + mask, dim=-1)",
        "mask = mask.unsqueeze(-1); weights = F.softmax(scores * mask, dim=-1)",
        "weights = F.softmax(self.weight * mask, dim=-1)",
        "weights = F.softmax(torch.where(scores > 0, scores, 0.0), dim=-1)",
        "mask = torch.zeros(9, 9).masked_fill(mask == 0, float('-inf')); weights = F.softmax(scores + mask, dim=-1)",
    ],
)
def test_other_masks_are_quiet(lines: str) -> None:
    assert found(lines) == []
