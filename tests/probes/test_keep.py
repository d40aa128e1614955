"""Graphs that outlive their step, and the variable that keeps them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from truestep.events import GraphsKept
from truestep.testing import capture_events

X = torch.randn(8, 4)


def kept(keep: Callable[[torch.Tensor, int], object], *, backward: bool = True) -> list[GraphsKept]:
    with capture_events() as events:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for step in range(70):
            optimizer.zero_grad()
            if not backward:
                model.eval()
            loss = model(X).pow(2).mean()
            if backward:
                loss.backward()
                optimizer.step()
            keep(loss, step)
    return [event for event in events if isinstance(event, GraphsKept)]


def training() -> None:
    """Apart from the test: pytest's own assertions call locals() in the frames that they stand in."""
    losses: list[torch.Tensor] = []
    model = nn.Linear(4, 2)
    for _ in range(30):
        loss = model(X).mean()
        loss.backward()
        losses.append(loss)


def test_a_list_is_named_with_its_line() -> None:
    with capture_events() as events:
        training()
    found = [event for event in events if isinstance(event, GraphsKept)]
    assert [(event.name, event.used) for event in found] == [("losses", True), ("losses", False)]
    event = found[-1]
    assert event.backward_ran
    assert event.site is not None
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[event.site.line - 1].strip() == "losses.append(loss)"


def test_kept_without_a_backward_has_a_size() -> None:
    outs: list[torch.Tensor] = []
    found = kept(lambda loss, step: outs.append(loss), backward=False)
    assert found
    assert not found[0].backward_ran
    assert found[0].kept_bytes > 0


@pytest.mark.parametrize(
    "keep",
    [
        lambda loss, step: None,
        lambda loss, step: loss.item(),
        lambda loss, step, seen=[]: seen.append(loss.detach()),
        lambda loss, step, seen=[]: (seen.append(loss), seen.clear() if len(seen) == 8 else None),
    ],
    ids=["nothing", "item", "detached", "a window of eight"],
)
def test_what_does_not_grow_is_quiet(keep: Callable[[torch.Tensor, int], object]) -> None:
    assert kept(keep) == []


def epochs(add: Callable[[torch.Tensor], object]) -> None:
    model = nn.Linear(4, 2)
    for _ in range(6):
        total = torch.zeros(())
        for _ in range(7):
            loss = model(X).mean()
            loss.backward()
            total += add(loss)
        print(total)


@pytest.mark.parametrize("add", [lambda loss: loss, lambda loss: loss * 8], ids=["plain", "scaled"])
def test_a_sum_that_begins_again_with_each_epoch_is_named(add: Callable[[torch.Tensor], object]) -> None:
    with capture_events() as events:
        epochs(add)
    (event,) = (event for event in events if isinstance(event, GraphsKept))
    assert (event.name, event.used) == ("total", True)


def test_a_sum_of_detached_losses_is_quiet() -> None:
    with capture_events() as events:
        epochs(torch.Tensor.detach)
    assert not [event for event in events if isinstance(event, GraphsKept)]


def test_a_sum_that_is_differentiated_itself_is_quiet() -> None:
    model = nn.Linear(4, 2)
    with capture_events() as events:
        for _ in range(16):
            total = torch.zeros(())
            for _ in range(7):
                total = total + model(X).mean()
            total.backward()
    assert not [event for event in events if isinstance(event, GraphsKept)]


def windows() -> None:
    """Outputs of a window that are differentiated one by one, as in ranking by gradients of lambdas."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    outputs: list[torch.Tensor] = []
    for _ in range(60):
        outputs.append(model(X))
        if len(outputs) == 20:
            for output in outputs:
                output.backward(torch.ones_like(output) / 20)
            optimizer.step()
            optimizer.zero_grad()
            outputs = []


def test_a_window_of_outputs_is_not_kept() -> None:
    with capture_events() as events:
        windows()
    assert [event for event in events if isinstance(event, GraphsKept)] == []
