"""Weights of models that are first called late."""

import copy

import torch
from torch import nn

from truestep.events import ModelMet
from truestep.probes.optimizer import fresh_weights
from truestep.probes.optimizer.sampled_measures import fingerprint
from truestep.testing import capture_events


def build():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def train(net, steps=12):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


def call_late(make):
    torch.manual_seed(0)
    with capture_events() as events:
        net = build()
        first = copy.deepcopy(net)
        train(net)
        make(net, first)(torch.ones(1, 8))
    return [event for event in events if isinstance(event, ModelMet)][-1].fresh


def test_new_networks_and_early_copies_are_fresh():
    assert len(call_late(lambda net, first: build())) == 2
    assert len(call_late(lambda net, first: first)) == 2


def test_copies_and_averages_of_a_trained_network_are_not():
    assert call_late(lambda net, first: copy.deepcopy(net)) == ()
    assert call_late(lambda net, first: mean(net, first)) == ()


def test_a_model_that_is_called_from_the_start_has_no_such_weights():
    with capture_events() as events:
        build()(torch.ones(1, 8))
    assert [event.fresh for event in events if isinstance(event, ModelMet)] == [()]


def mean(net, first):
    with torch.no_grad():
        for slow, fast in zip(first.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.01)
    return first


def test_each_trained_parameter_is_read_once_for_all_weights(monkeypatch):
    reads = []

    def read(weight):
        reads.append(weight)
        return fingerprint(weight)

    monkeypatch.setattr(fresh_weights, "fingerprint", read)
    layers = [nn.Linear(8, 8, bias=False) for _ in range(40)]
    with capture_events() as events:
        train(nn.Sequential(*layers[:20]))
        nn.Sequential(*layers[20:])(torch.ones(1, 8))
    assert len([event for event in events if isinstance(event, ModelMet)][-1].fresh) == 20
    assert len(reads) == 40
