"""Weights that a softmax gives to masked scores, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from truestep.events import MaskedScoresRead
from truestep.testing import capture_events

Tensor = torch.Tensor
ROWS, PLACES, WIDTH = 6, 8, 16
LENGTHS = torch.tensor([3, 5, 8, 4, 6, 2])
PADDING = torch.arange(PLACES) >= LENGTHS[:, None]
LATER = torch.ones(PLACES, PLACES, dtype=torch.bool).triu(1)
INFINITY = float("inf")


def read(weights_of: Callable[[Tensor], Tensor], *, pairs: bool = True, steps: int = 2) -> list[MaskedScoresRead]:
    """Return the events of steps with a loss of weighted values; the scores are of pairs, or one for each place."""
    torch.manual_seed(0)
    layer, score = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD([*layer.parameters(), *score.parameters()], lr=0.01)
    x, y = torch.randn(ROWS, PLACES, WIDTH), torch.randn(ROWS, WIDTH)
    with capture_events() as events:
        for _ in range(steps):
            values = layer(x)
            if pairs:
                result = (weights_of(values @ x.transpose(1, 2)) @ values).mean(1)
            else:
                result = (weights_of(score(values).squeeze(2)).unsqueeze(2) * values).sum(1)
            optimizer.zero_grad()
            F.mse_loss(result, y).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, MaskedScoresRead)]


def masked(scores: Tensor) -> Tensor:
    return F.softmax(scores.masked_fill(LATER, 0.0), dim=-1)


def scaled(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(LATER, 0) / WIDTH**0.5, -1)


def in_place(scores: Tensor) -> Tensor:
    return scores.masked_fill_(LATER, 0.0).softmax(-1)


def chosen(scores: Tensor) -> Tensor:
    return torch.where(LATER, torch.zeros(()), scores).softmax(-1)


def multiplied(scores: Tensor) -> Tensor:
    return (scores * (~LATER).float()).softmax(-1)


def of_logarithms(scores: Tensor) -> Tensor:
    return scores.masked_fill(LATER, 0.0).log_softmax(-1).exp()


def with_dropout(scores: Tensor) -> Tensor:
    return F.dropout(masked(scores), 0.1)


def small(scores: Tensor) -> Tensor:
    return scores.masked_fill(LATER, -1.0).softmax(-1)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (masked, "fill"), (scaled, "fill"), (in_place, "fill"), (chosen, "where"), (multiplied, "product"),
        (of_logarithms, "fill"), (with_dropout, "fill"), (small, "fill"),
    ],
)  # fmt: skip
def test_scores_of_zero_have_a_weight(form: Callable[[Tensor], Tensor], name: str) -> None:
    first, second = read(form)
    assert 0.1 < first.share < 0.9
    assert first.form == second.form == name
    assert first.log is (form is of_logarithms)


def test_padding_of_places_has_a_weight() -> None:
    first, _ = read(lambda scores: scores.masked_fill(PADDING, 0.0).softmax(1), pairs=False)
    assert 0.1 < first.share < 0.9


@pytest.mark.parametrize("value", [-INFINITY, -1e9, -1e4])
def test_scores_far_below_the_others_have_none(value: float) -> None:
    first, _ = read(lambda scores: scores.masked_fill(LATER, value).softmax(-1))
    assert first.share == pytest.approx(0.0, abs=1e-6)
    assert first.files == ()


def renormalised(scores: Tensor) -> Tensor:
    keep = (~LATER).float()
    weights = (scores * keep).softmax(-1) * keep
    return weights / (weights.sum(-1, keepdim=True) + 1e-9)


def masked_behind(scores: Tensor) -> Tensor:
    return scores.masked_fill(LATER, 0.0).softmax(-1).masked_fill(LATER, 0.0)


def whole_rows(scores: Tensor) -> Tensor:
    return scores.masked_fill(PADDING[:, :, None], 0.0).softmax(-1)


def after_infinity(scores: Tensor) -> Tensor:
    filled = scores.masked_fill(LATER, -INFINITY)
    return filled.masked_fill(LATER.all(-1, keepdim=True), 0.0).softmax(-1)


def no_numbers(scores: Tensor) -> Tensor:
    return scores.masked_fill(scores.isnan(), 0.0).softmax(-1)


def limited(scores: Tensor) -> Tensor:
    return torch.where(scores > 0, scores, torch.zeros(())).softmax(-1)


def diagonal(scores: Tensor) -> Tensor:
    return scores.masked_fill(torch.eye(PLACES, dtype=torch.bool), 0.0).softmax(-1)


def added(scores: Tensor) -> Tensor:
    keep = (~LATER).float()
    return (scores * keep - (1 - keep) * 1e9).softmax(-1)


def gated(scores: Tensor) -> Tensor:
    return (scores * torch.linspace(0, 1, PLACES)).softmax(-1)


@pytest.mark.parametrize(
    "form",
    [renormalised, masked_behind, whole_rows, after_infinity, no_numbers, limited, diagonal, added, gated],
)
def test_masks_that_leave_out_or_are_none_are_not_read(form: Callable[[Tensor], Tensor]) -> None:
    assert read(form) == []


def test_the_first_three_losses_of_a_line_are_read() -> None:
    assert len(read(masked, steps=40)) == 3


def test_hooks_of_saved_tensors_are_not_called() -> None:
    unpacked = []

    def weights(scores: Tensor) -> Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: unpacked.append(1) or one):
            return masked(scores)

    assert read(weights, steps=1) == []
    with_one = len(unpacked)
    unpacked.clear()
    values = torch.randn(ROWS, PLACES, PLACES, requires_grad=True)
    weights(values).sum().backward()
    assert with_one == len(unpacked)


def test_a_checkpoint_is_run_twice_only() -> None:
    ran = []

    def weights(scores: Tensor) -> Tensor:
        ran.append(1)
        return masked(scores)

    assert read(lambda scores: checkpoint(weights, scores, use_reentrant=False), steps=1) == []
    assert len(ran) == 2
