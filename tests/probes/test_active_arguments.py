"""Arguments without influence: which of them are named, and where their influence ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from truestep.config import Options
from truestep.events import ArgumentsCompared, Event, InputsCompared
from truestep.supervision import Session


class Part(nn.Module):
    def forward(self, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        return x * 2


class Network(nn.Module):
    def __init__(self, use: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.use, self.part, self.head = use, Part(), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        return self.head(self.use(self, x, beside))  # type: ignore[no-any-return]


def compared(use: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor], beside: torch.Tensor) -> ArgumentsCompared:
    """Train a model on two arguments, and return the last comparison."""
    torch.manual_seed(0)
    random.seed(0)
    events: list[Any] = []
    model = Network(use)
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            model(torch.randn(8, 3), beside).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, ArgumentsCompared)][-1]


NUMBERS = torch.arange(24.0).reshape(8, 3) / 24


def test_an_argument_with_influence_is_alive() -> None:
    event = compared(lambda model, x, beside: x + beside, NUMBERS)
    assert (event.alive, event.dead) == (("x", "beside"), ())


def test_the_influence_ends_at_the_operation_that_loses_it() -> None:
    def rounded(model: Any, x: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        whole = beside.long()
        return x + whole

    event = compared(rounded, NUMBERS)
    assert event.dead == ("beside",)
    assert event.ends is not None
    assert event.ends.line == rounded.__code__.co_firstlineno + 1


def test_the_influence_ends_in_the_part_that_drops_the_argument() -> None:
    event = compared(lambda model, x, beside: model.part(x, beside), NUMBERS)
    assert event.ends is not None
    assert event.ends.line == Part.forward.__code__.co_firstlineno


def test_an_argument_that_is_used_at_random_is_alive() -> None:
    event = compared(lambda model, x, beside: x + beside if random.random() < 0.4 else x, NUMBERS)
    assert event.dead == ()


def test_masks_constants_and_sparse_tensors_are_not_judged() -> None:
    flags = NUMBERS[:, :, None] > 0.5
    for beside in (torch.ones(3, 3).triu(), torch.full((8, 3), 2.0), flags, NUMBERS.to_sparse()):
        event = compared(lambda model, x, beside: x + 0 * beside.sum(), beside)
        assert (event.alive, event.dead) == (("x",), ())


class Forecaster(nn.Module):
    """Reads one position of the features of a causal convolution, or all."""

    def __init__(self, at: int | slice) -> None:
        super().__init__()
        self.conv, self.head, self.at = nn.Conv1d(3, 4, 2), nn.Linear(4, 1), at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.conv(nn.functional.pad(x.transpose(1, 2), (1, 0))))
        h = h[:, :, self.at]
        return self.head(h.mean(2) if h.dim() > 2 else h)  # type: ignore[no-any-return]


class Reader(nn.Module):
    """Averages over its tokens, or over the padding."""

    def __init__(self, inverted: bool) -> None:
        super().__init__()
        self.embed, self.head, self.inverted = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 2), inverted
        self.embed.weight.data[0] = 1

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        kept = ((tokens == 0) if self.inverted else (tokens != 0)).float().unsqueeze(2)
        return self.head((self.embed(tokens) * kept).sum(1))  # type: ignore[no-any-return]


def compared_inputs(model: nn.Module, x: torch.Tensor) -> InputsCompared:
    torch.manual_seed(0)
    told: list[Event] = []
    with Session(Options(), also=told.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert session.stop().internal_errors == ()
    compared = [event for event in told if isinstance(event, InputsCompared)]
    assert compared
    return compared[0]


def found_positions(model: nn.Module, x: torch.Tensor) -> tuple[str, str]:
    found = compared_inputs(model, x)
    return found.first, found.only_padding


class Alone(nn.Module):
    """Reads the first position of values that a layer makes of each position alone."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(x)[:, 0])  # type: ignore[no-any-return]


def test_results_of_later_positions_that_nothing_uses_depend_on_earlier_ones() -> None:
    x = torch.randn(8, 6, 3)
    along, alone = compared_inputs(Forecaster(0), x), compared_inputs(Alone(), x)
    assert (along.first, along.unused) == ("x", True)
    assert (alone.first, alone.unused) == ("x", False)


@pytest.mark.parametrize(("at", "first"), [(0, "x"), (-1, ""), (slice(None), "")])
def test_a_model_that_reads_the_first_position_only(at: int | slice, first: str) -> None:
    assert found_positions(Forecaster(at), torch.randn(8, 6, 3)) == (first, "")


@pytest.mark.parametrize("inverted", [True, False])
def test_a_model_that_reads_the_padding_only(inverted: bool) -> None:
    tokens = torch.randint(1, 9, (8, 6))
    tokens[::2, 3:] = 0
    assert found_positions(Reader(inverted), tokens) == ("", "tokens" if inverted else "")


class Pair(nn.Module):
    """Gets two arguments of one shape, and reads the first."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        return self.head(one)  # type: ignore[no-any-return]


class WithDefault(Pair):
    def forward(self, one: torch.Tensor, former: torch.Tensor | None = None) -> torch.Tensor:
        return self.head(one)  # type: ignore[no-any-return]


class Columns(nn.Module):
    """Categories in columns with other ranges, beside numbers that it reads and does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.head = nn.Embedding(9, 3), nn.Embedding(2, 3), nn.Linear(9, 2)

    def forward(self, groups: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        parts = [self.one(groups[:, 0]), self.two(groups[:, 1]), torch.zeros_like(numbers)]
        return self.head(torch.cat(parts, 1))  # type: ignore[no-any-return]


def dead_of(model: nn.Module, *given: torch.Tensor) -> tuple[str, ...]:
    """Train a model on these arguments, and return the names of those without influence."""
    events: list[Any] = []
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            model(*given).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    found = [event for event in events if isinstance(event, ArgumentsCompared)]
    assert found
    return found[-1].dead


def test_the_second_of_a_pair_that_the_code_does_not_name_is_dead() -> None:
    one, two = torch.randn(8, 3), torch.randn(8, 3)
    assert dead_of(Pair(), one, two) == ("two",)
    assert dead_of(Pair(), one, torch.randn(8, 5)) == ()
    assert dead_of(Pair(), one, torch.randn(8, 3).double()) == ()
    assert dead_of(WithDefault(), one, two) == ()


def test_a_part_of_a_common_signature_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Both(Pair):
        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            return self.head(one + two)  # type: ignore[no-any-return]

    monkeypatch.setitem(globals(), "Both", Both)
    assert dead_of(Pair(), torch.randn(8, 3), torch.randn(8, 3)) == ()


def test_columns_of_categories_keep_their_ranges() -> None:
    groups = torch.stack([torch.arange(8), torch.arange(8) % 2], 1)
    assert dead_of(Columns(), groups, NUMBERS) == ("numbers",)


OPTION = False


def test_an_argument_of_an_option_that_is_off_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Joining(Pair):
        kind = "plain"

        def __init__(self, own: bool = False) -> None:
            super().__init__()
            self.own = own

        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            if OPTION or self.own:
                one = one + two * 0
            one = one * two * 0 + one if self.kind == "joined" else one
            if self.kind is None or not self.own:
                return self.head(one)  # type: ignore[no-any-return]
            return self.head(one + two * 0)  # type: ignore[no-any-return]

    one, two = torch.randn(8, 3), torch.randn(8, 3)
    assert dead_of(Joining(), one, two) == ()
    assert dead_of(Joining(own=True), one, two) == ("two",)
    with monkeypatch.context() as changed:
        changed.setattr(Joining, "kind", "joined")
        assert dead_of(Joining(), one, two) == ("two",)
    monkeypatch.setitem(globals(), "OPTION", True)
    assert dead_of(Joining(), one, two) == ("two",)


def test_modes_and_own_variables_are_no_options() -> None:
    class Training(Pair):
        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            if self.training:
                one = one + two * 0
            return self.head(one)  # type: ignore[no-any-return]

    class Own(Pair):
        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            joined = not OPTION
            if joined:
                one = one + two * 0
            return self.head(one)  # type: ignore[no-any-return]

    for model in (Training(), Own()):
        assert dead_of(model, torch.randn(8, 3), torch.randn(8, 3)) == ("two",)


def test_an_argument_that_gives_its_shape_is_not_judged() -> None:
    class Shaped(Pair):
        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            start = torch.zeros(two.shape[0], two.size(1), device=two.device) + two.new_zeros(len(two), 1)
            return self.head(one + start)  # type: ignore[no-any-return]

    class Cut(Pair):
        def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
            return self.head(one + two[: two.shape[0]] * 0)  # type: ignore[no-any-return]

    one, two = torch.randn(8, 3), torch.randn(8, 3)
    assert dead_of(Shaped(), one, two) == ()
    assert dead_of(Cut(), one, two) == ("two",)
