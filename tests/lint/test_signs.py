"""Losses with the wrong sign, by the syntax: hinges of positive and negative pairs, likelihoods, negatives."""

import pytest

from truestep.lint import lint

PROGRAM = """
import torch
import torch.nn.functional as F

def hinge(anchor, positive, negative, margin, sim_pos, sim_neg, pos_score, neg_score):
    {lines}
    return loss.mean()
"""


def found(lines: str) -> list[str]:
    text = PROGRAM.format(lines=lines.replace("; ", "\n    "))
    return [one.message for one in lint(text) if one.rule == "loss-maximised"]


def made(kind: str, first: str, second: str) -> str:
    of = {"cosine": "F.cosine_similarity(anchor, {})", "distance": "F.pairwise_distance(anchor, {})"}[kind]
    each = "; ".join(f"{name} = {of.format(other)}" for name, other in (("pos", "positive"), ("neg", "negative")))
    return f"{each}; loss = F.relu({first} - {second} + margin)"


@pytest.mark.parametrize(
    "lines",
    [
        made("cosine", "pos", "neg"),
        made("distance", "neg", "pos"),
        "loss = torch.clamp(margin + sim_pos - sim_neg, min=0)",
        "loss = (margin - sim_neg + sim_pos).clamp(min=0)",
        "loss = torch.relu(margin - (F.cosine_similarity(anchor, negative) - F.cosine_similarity(anchor, positive)))",
        "d_pos = 1 - (anchor * positive).sum(1); d_neg = 1 - (anchor * negative).sum(1); "
        "loss = F.relu(d_neg - d_pos + 1)",
        "d_ap = (anchor - positive).pow(2).sum(1); d_an = (anchor - negative).pow(2).sum(1); "
        "loss = torch.max(d_an - d_ap + margin, torch.zeros(1))",
    ],
)
def test_exchanged_pairs_are_found(lines):
    (message,) = found(lines)
    assert message.startswith("the hinge makes the ")


@pytest.mark.parametrize(
    "lines",
    [
        made("cosine", "neg", "pos"),
        made("distance", "pos", "neg"),
        "loss = torch.clamp(margin + sim_neg - sim_pos, min=0)",
        "loss = torch.relu(margin - (sim_pos - sim_neg))",
        "loss = F.relu(margin + pos_score - neg_score)",  # distances of a knowledge graph can be called scores
        "d_pos = 1 - (anchor * positive).sum(1); d_neg = 1 - (anchor * negative).sum(1); "
        "loss = F.relu(d_pos - d_neg + 1)",
        "loss = F.relu(1 - sim_pos) + F.relu(sim_neg - margin)",
        "positive = anchor - positive; loss = F.relu(positive - negative)",
        "loss = (sim_pos - sim_neg).clamp(min=-1)",
        "loss = F.softplus(sim_neg - sim_pos)",
    ],
)
def test_other_hinges_are_quiet(lines):
    assert found(lines) == []


STEP = """
import torch
from torch import nn
from torch.distributions import Normal

def train(model, optimizer, x, y):
    criterion = nn.MSELoss()
    {line}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("loss = -criterion(model(x), y)", 1),
        ("loss = -nn.functional.mse_loss(model(x), y, reduction='none').mean()", 1),
        ("loss = Normal(model(x), 1.0).log_prob(y).mean()", 1),
        ("likelihood = Normal(model(x), 1.0).log_prob(y); loss = likelihood.sum()", 1),
        ("loss = criterion(model(x), y)", 0),
        ("loss = -Normal(model(x), 1.0).log_prob(y).mean()", 0),
        ("action = Normal(model(x), 1.0).sample(); loss = Normal(model(x), 1.0).log_prob(action).mean()", 0),
        ("attack = -criterion(model(x), y); loss = attack", 0),
        ("loss = -model(x).mean()", 0),
    ],
)
def test_values_that_are_made_larger(line, count):
    text = STEP.format(line=line.replace("; ", "\n    "))
    assert len([one for one in lint(text) if one.rule == "loss-maximised"]) == count
