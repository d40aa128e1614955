"""Targets that are tokens of the input: which models read them, and in which order they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import TargetsCompared
from truestep.supervision import Session

SIZE = 9


class Reader(nn.Module):
    """Scores for each position, from a recurrent layer of one or two directions."""

    def __init__(self, *, both: bool = False, first: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(SIZE, 8)
        self.rnn = nn.GRU(8, 8, batch_first=first, bidirectional=both)
        self.out = nn.Linear(16 if both else 8, SIZE)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.embed(tokens))[0])  # type: ignore[no-any-return]


def compared(model: nn.Module, loss_of: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> list[TargetsCompared]:
    """Train a model on tokens, and return the comparisons."""
    torch.manual_seed(0)
    events: list[Any] = []
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            loss_of(model, torch.randint(0, SIZE, (12, 10))).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, TargetsCompared)]


def following(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])


def inside(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(tokens)[:, :-1].reshape(-1, SIZE), tokens[:, 1:].flatten())


def unshifted(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def of_each(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    each = F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:], reduction="none")
    return (each * torch.linspace(0.5, 1, each.shape[1])).mean()


@pytest.mark.parametrize("loss_of", [following, inside, of_each])
def test_a_model_of_one_direction_does_not_read_its_targets(loss_of: Any) -> None:
    (event,) = compared(Reader(), loss_of)
    assert (event.shift, event.reads, event.crossed) == (1, False, False)


@pytest.mark.parametrize("loss_of", [following, inside, of_each])
def test_the_layer_of_two_directions_is_the_cause(loss_of: Any) -> None:
    event = compared(Reader(both=True), loss_of)[-1]
    assert (event.shift, event.reads) == (1, True)
    assert event.cause is not None
    assert event.cause.line == Reader.forward.__code__.co_firstlineno + 1


def test_a_prefix_that_the_loss_leaves_out_may_be_read() -> None:
    class Prefixed(nn.Module):
        """Reads the first seven positions in both directions, and the others in one."""

        def __init__(self) -> None:
            super().__init__()
            self.embed, self.out = nn.Embedding(SIZE, 8), nn.Linear(8, SIZE)
            self.mix = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x, length = self.embed(tokens), tokens.shape[1]
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            hidden[:, :7] = False
            return self.out(x + self.mix(x, x, x, attn_mask=hidden)[0])  # type: ignore[no-any-return]

    def of_the_rest(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        targets = tokens[:, 1:].clone()
        targets[:, :6] = -100
        return F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), targets)

    for loss_of in (of_each, of_the_rest):
        events = compared(Prefixed(), loss_of)
        assert events
        assert not any(event.reads for event in events)


def test_targets_that_are_not_shifted_are_read() -> None:
    event = compared(Reader(), unshifted)[-1]
    assert (event.shift, event.reads, event.cause) == (0, True, None)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_masked_language_model_must_not_get_the_tokens_that_it_is_to_predict(hidden: bool) -> None:
    def masked(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        chosen = torch.rand(tokens.shape) < 0.35
        inputs = tokens.masked_fill(chosen, 0) if hidden else tokens
        targets = tokens.masked_fill(~chosen, -100)
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=-100)

    events = compared(Reader(both=True), masked)
    assert [(event.shift, event.reads) for event in events[-1:]] == ([] if hidden else [(0, True)])


def test_targets_that_are_shifted_in_the_wrong_direction_are_read() -> None:
    def rolled(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(1, 1).flatten())

    event = compared(Reader(), rolled)[-1]
    assert (event.shift, event.reads, event.cause) == (-1, True, None)


@pytest.mark.parametrize(("blank", "drawn"), [(-100, True), (0, True), (-100, False)])
def test_drawn_tokens_that_are_to_be_repeated_later_are_a_test_of_a_memory(blank: int, drawn: bool) -> None:
    def later(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        given = tokens if drawn else torch.minimum(tokens, tokens.roll(1, 0).roll(3, 1))  # small ones are frequent
        targets = torch.cat([torch.full((len(given), 1), blank), given[:, :-1]], 1)
        return F.cross_entropy(model(given).flatten(0, 1), targets.flatten())

    events = compared(Reader(), later)
    assert [(event.shift, event.reads) for event in events[-1:]] == ([] if drawn else [(-1, True)])


def test_targets_in_another_order_than_the_outputs_are_seen() -> None:
    def crossed(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        time = tokens.t()
        return F.cross_entropy(model(time[:-1]).flatten(0, 1), time[1:].t().flatten())

    def right(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        time = tokens.t()
        return F.cross_entropy(model(time[:-1]).transpose(0, 1).flatten(0, 1), time[1:].t().flatten())

    assert compared(Reader(first=False), crossed)[-1].crossed
    (event,) = compared(Reader(first=False), right)
    assert (event.crossed, event.reads) == (False, False)


class Placed(nn.Module):
    """Scores for each position, with a fixed number of positions; summed over them before, or kept apart."""

    def __init__(self, *, summary: bool) -> None:
        super().__init__()
        self.embed, self.out, self.summary = nn.Embedding(SIZE, 8), nn.Linear(8, SIZE), summary
        self.places = nn.Parameter(torch.randn(10, 8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(tokens) * self.places.exp()
        hidden = hidden.sum(1, keepdim=True) + self.places if self.summary else hidden
        return self.out(hidden)  # type: ignore[no-any-return]


def test_positions_of_a_fixed_number_are_told_by_their_size() -> None:
    assert compared(Placed(summary=False), unshifted)[-1].reads
    assert not compared(Placed(summary=True), unshifted)[-1].reads


def test_other_targets_are_not_compared() -> None:
    def classes(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens)[:, -1], tokens.sum(1) % SIZE)

    def masked(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        hidden = torch.rand(tokens.shape) < 0.3
        targets = tokens.masked_fill(~hidden, -100)
        return F.cross_entropy(model(tokens.masked_fill(hidden, 0)).transpose(1, 2), targets)

    assert compared(Reader(both=True), classes) == []
    assert compared(Reader(both=True), masked) == []


def windows(last: int, first: int, *, steps: int = 52) -> list[TargetsCompared]:
    """Train on windows of eight values up to ``last``; the targets are four values of the series from ``first``."""
    torch.manual_seed(0)
    series = torch.randn(400).cumsum(0) * 0.3 + torch.randn(400) * 0.5
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    events: list[Any] = []
    with Session(also=events.append) as session:
        for _ in range(steps):
            at = torch.randint(0, 380, (64, 1))
            x, y = series[at + torch.arange(last - 8, last)], series[at + torch.arange(first, first + 4)]
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, TargetsCompared)]


def test_one_of_several_targets_that_the_window_has_is_seen() -> None:
    (event,) = windows(8, 7)
    assert (event.column, event.reads) == (7, True)


def test_windows_before_their_targets_and_reconstructions_are_quiet() -> None:
    assert not windows(8, 8)
    assert not windows(8, 4)  # all targets are in the window


def test_tokens_with_padding_behind_a_third_of_each_row_are_compared_before_it() -> None:
    def short(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        kept = (tokens + 1) % SIZE * (torch.arange(10) < 4)
        return F.cross_entropy(model(kept).transpose(1, 2), kept)

    found = compared(Reader(), short)
    assert found
    assert all(event.reads for event in found)
