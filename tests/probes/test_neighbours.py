"""Samples that are searched among themselves in an evaluation, by the statements after the call of the model."""

import runpy

import pytest

from truestep.events import ResultCompared
from truestep.testing import capture_events

PROGRAM = """
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
X = torch.randn(40, 8)
Y = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

def evaluate(k=3):
    net.eval()
    with torch.no_grad():
        z = F.normalize(net(X), dim=1)
    {body}
    return hit

evaluate()
"""
OWN = [
    "near = (z @ z.t()).topk(k, dim=1).indices; hit = (Y[near] == Y[:, None]).any(1)",
    "near = torch.cdist(z, z).argsort(dim=1)[:, :k]; hit = Y[near] == Y[:, None]; hit = hit[:, :2].any(dim=1)",
    "hit = Y[(z @ z.t()).argmax(1)] == Y",
    "s = (z @ z.t()).numpy(); hit = torch.as_tensor(Y.numpy()[s.argmax(1)] == Y.numpy())",
]
OTHERS = [
    "near = (z @ z.t()).topk(k, dim=1).indices; hit = Y[near] == Y[:, None]; hit = (hit.sum(1) - 1) / (k - 1)",
    "near = (z @ z.t()).topk(k, dim=1).indices; hit = Y[near] == Y[:, None]; hit = hit[:, 1:].any(1)",
    "near = (z @ z.t()).topk(k, dim=1).indices; hit = near != torch.arange(40)[:, None]; hit = hit.any(1)",
    "hit = (z @ z.t()).argmax(1) == torch.arange(40)",
    "U = torch.arange(40) * 3; hit = U[(z @ z.t()).argmax(1)] == U",
    "near = (z @ z.t()).topk(k + 1, dim=1).indices[:, 1:]; hit = Y[near] == Y[:, None]",
    "near = (z @ z.t()).topk(k + 1, dim=1).indices; found = Y[near]; hit = found[:, 1:] == Y[:, None]",
    "near = torch.cdist(z, z).argsort(dim=1)[:, 1 : k + 1]; hit = Y[near] == Y[:, None]",
    "s = z @ z.t(); s.fill_diagonal_(-2); near = s.topk(k, dim=1).indices; hit = Y[near] == Y[:, None]",
    "s = z @ z.t(); s.diagonal().fill_(-2); near = s.topk(k, dim=1).indices; hit = Y[near] == Y[:, None]",
    "s = z @ z.t(); s[range(40), range(40)] = -2; near = s.topk(k, dim=1).indices; hit = Y[near] == Y[:, None]",
    "s = z @ z.t(); v = s.view(-1); v[::41] = -2; near = s.topk(k, dim=1).indices; hit = Y[near] == Y[:, None]",
    "s = (z @ z.t()).numpy(); np.fill_diagonal(s, -2); hit = Y.numpy()[s.argmax(1)] == Y.numpy()",
    "near = (z @ z.t() - 10 * torch.eye(40)).topk(k, dim=1).indices; hit = Y[near] == Y[:, None]",
    "near = (z[:20] @ z[20:].t()).topk(k, dim=1).indices; hit = Y[20:][near] == Y[:20, None]",
]


def mistakes(tmp_path, body):
    path = tmp_path / "search.py"
    path.write_text(PROGRAM.format(body=body))
    with capture_events() as events:
        runpy.run_path(str(path))
    return [event.how for event in events if isinstance(event, ResultCompared) and event.how]


@pytest.mark.parametrize("body", OWN)
def test_the_nearest_of_each_sample_is_the_sample_itself(tmp_path, body):
    assert mistakes(tmp_path, body) == ["own"]


@pytest.mark.parametrize("body", OTHERS)
def test_searches_without_the_sample_are_quiet(tmp_path, body):
    assert mistakes(tmp_path, body) == []
