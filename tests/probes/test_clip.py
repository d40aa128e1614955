"""Clipping: seen however it was imported, with the state of the gradients right before it."""

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from truestep.events import Event, GradientsClipped
from truestep.testing import capture_events

X = torch.randn(8, 4)


def clips(events: list[Event]) -> list[GradientsClipped]:
    return [event for event in events if isinstance(event, GradientsClipped)]


def test_both_clips_are_seen_when_imported_early() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        torch.optim.SGD(model.parameters(), 0.1)
        model(X).sum().backward()
        clip_grad_norm_(model.parameters(), 0.5)
        clip_grad_value_(model.parameters(), 0.25)
    norm, value = clips(events)
    assert (norm.kind, norm.given, norm.max_norm, norm.fresh, norm.used) == ("norm", 2, 0.5, 2, 0)
    assert (value.kind, value.given, value.max_norm) == ("value", 2, 0.25)
    assert norm.site is not None
    assert norm.site.path == __file__


def test_state_of_what_is_clipped() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        clip_grad_norm_(model.parameters(), 1.0)
        model(X).sum().backward()
        optimizer.step()
        clip_grad_norm_(model.parameters(), 1.0)
        clip_grad_norm_(nn.Linear(2, 2).parameters(), 1.0)
    first, second, other = clips(events)
    assert (first.absent_grad, first.fresh) == (2, 0)
    assert (second.used, second.fresh) == (2, 0)
    assert (other.foreign, other.optimizer) == (2, None)


@pytest.mark.filterwarnings("ignore:`parameters` is an empty generator")
def test_an_exhausted_generator_and_a_single_tensor() -> None:
    model = nn.Linear(4, 2)
    parameters = model.parameters()
    with capture_events() as events:
        torch.optim.SGD(parameters, 0.1)
        model(X).sum().backward()
        clip_grad_norm_(parameters, 1.0)
        clip_grad_norm_(model.weight, float("inf"))
    empty, single = clips(events)
    assert (empty.given, single.given) == (0, 1)
    assert single.max_norm == float("inf")
    assert single.unclipped == 1


def test_scaled_gradients() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu")
        for unscale in (False, True):
            scaler.scale(model(X).sum()).backward()
            if unscale:
                scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert [event.scaled for event in clips(events)] == [True, False]


def test_the_result_is_the_same() -> None:
    def run() -> list[object]:
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        model(X).sum().backward()
        norm = clip_grad_norm_(model.parameters(), 0.5, norm_type=1.0, foreach=True)
        clip_grad_value_(model.weight, clip_value=0.01)
        return [norm.item(), model.weight.grad.tolist() if model.weight.grad is not None else None]

    plain = run()
    with capture_events():
        assert run() == plain
