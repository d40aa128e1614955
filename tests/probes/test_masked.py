"""Weights that a softmax gives to masked scores, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from truestep.events import MaskedScoresRead
from truestep.probes.backward.loss_terms.mask_signs import is_at_random
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


def assigned(scores: Tensor) -> Tensor:
    scores = scores.clone()
    scores[LATER.expand_as(scores)] = 0
    return scores.softmax(-1)


def assigned_in_columns(scores: Tensor) -> Tensor:
    scores = scores.clone()
    scores[:, LATER] = 0.0
    return scores.softmax(-1)


def of_heads(scores: Tensor) -> Tensor:
    several = scores.unsqueeze(1).expand(-1, 2, -1, -1).masked_fill(PADDING[:, None, None], 0.0)
    weights = several.reshape(-1, PLACES, PLACES).softmax(-1)
    return weights.view(ROWS, 2, PLACES, PLACES).mean(1)


def turned(scores: Tensor) -> Tensor:
    return (scores * (~PADDING[:, :, None]).float()).transpose(1, 2).softmax(-1)


def spread(scores: Tensor) -> Tensor:
    return (scores * (~PADDING[:, None]).float()).unsqueeze(1).expand(-1, 2, -1, -1).softmax(-1).mean(1)


def number_first(scores: Tensor) -> Tensor:
    return torch.softmax(torch.tensor(0.5) * scores.masked_fill(LATER, 0), -1)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (masked, "fill"), (scaled, "fill"), (in_place, "fill"), (chosen, "where"), (multiplied, "product"),
        (of_logarithms, "fill"), (with_dropout, "fill"), (small, "fill"), (assigned, "put"),
        (assigned_in_columns, "put"), (of_heads, "fill"), (turned, "product"), (spread, "product"),
        (number_first, "fill"),
    ],
)  # fmt: skip
def test_scores_of_zero_have_a_weight(form: Callable[[Tensor], Tensor], name: str) -> None:
    first, second = read(form)
    assert 0.1 < first.share < 0.9
    assert first.form == second.form == name
    assert first.log is (form is of_logarithms)
    assert not first.at_random
    assert not second.at_random


def test_a_mask_without_a_structure_is_one_of_chance_until_it_comes_again() -> None:
    generator = torch.Generator().manual_seed(0)
    fixed = torch.rand(PLACES, PLACES, generator=generator) < 0.3

    def dropped(scores: Tensor) -> Tensor:
        return scores.masked_fill(torch.rand(scores.shape, generator=generator) < 0.3, 0.0).softmax(-1)

    assert [one.at_random for one in read(dropped)] == [True, True]
    assert [one.at_random for one in read(lambda scores: scores.masked_fill(fixed, 0.0).softmax(-1))] == [True, False]


@pytest.mark.parametrize("lengths", [LENGTHS, LENGTHS.sort().values, torch.full((ROWS,), 6)])
def test_padding_is_not_of_chance(lengths: Tensor) -> None:
    keep = torch.arange(2 * PLACES) < 2 * lengths.repeat(2)[:, None]
    assert not is_at_random(keep)
    edges = torch.rand(20, 20, generator=torch.Generator().manual_seed(0)) < 0.2
    assert is_at_random(edges)
    assert not is_at_random(edges | edges.T)
    assert not is_at_random(edges | torch.eye(20, dtype=torch.bool))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("shape", [(8, 8), (16, 7, 7), (4, 1, 9, 9), (3, 2, 5, 5), (100,)])
def test_dropouts_are_of_chance(share: float, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    assert all(is_at_random(torch.rand(shape, generator=generator) < share) for _ in range(20))


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


def gated_rows(scores: Tensor) -> Tensor:
    keys = scores.masked_fill(PADDING[:, None], -INFINITY)
    return keys.masked_fill(PADDING[:, :, None], 0.0).softmax(-1)


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


def cleared(scores: Tensor) -> Tensor:
    weights = scores.masked_fill(LATER, 0.0).softmax(-1).clone()
    weights[LATER.expand_as(weights)] = 0
    return weights / weights.sum(-1, keepdim=True)


def with_a_small_number(scores: Tensor) -> Tensor:
    keep = (~LATER).float()
    weights = ((scores * keep).softmax(-1) + 1e-8) * keep
    return weights / weights.sum(-1, keepdim=True)


def divided_before(scores: Tensor) -> Tensor:
    keep = (~LATER).float()
    weights = (scores * keep).softmax(-1)
    return weights / (weights * 1.0).sum(-1, keepdim=True) * keep


def turned_back(scores: Tensor) -> Tensor:
    weights = (scores.transpose(1, 2) * (~PADDING[:, :, None]).float()).softmax(1).permute(0, 2, 1)
    return weights.unsqueeze(1).reshape(ROWS, PLACES, PLACES) * (~PADDING[:, None]).float()


def by_a_sum(scores: Tensor) -> Tensor:
    keep = (~PADDING).float()
    weights = torch.einsum("bqk,bk->bqk", (scores * keep[:, None]).softmax(-1), keep)
    return weights / weights.sum(-1, keepdim=True)


def of_quotients(scores: Tensor) -> Tensor:
    keep = (~PADDING).float()
    weights = (scores * keep[:, None]).softmax(-1)
    return weights @ torch.diag_embed(keep) / (weights @ keep[..., None])


def of_quotients_turned(scores: Tensor) -> Tensor:
    keep = (~PADDING).float()
    weights = (scores * keep[:, None]).softmax(-1).transpose(1, 2)
    return (torch.diag_embed(keep) @ weights / (keep[:, None] @ weights)).transpose(1, 2)


def exponentials(scores: Tensor) -> Tensor:
    keep = (~LATER).float()
    weights = (scores * keep).log_softmax(-1).exp() * keep
    return weights / weights.sum(-1, keepdim=True)


def learned(scores: Tensor) -> Tensor:
    return scores.masked_fill(LATER, torch.nn.Parameter(torch.zeros(()))).softmax(-1)


def pruned(scores: Tensor) -> Tensor:
    weights = torch.nn.Parameter(torch.randn(PLACES, PLACES))
    return scores.softmax(-1) @ (weights * (~LATER).float()).softmax(-1)


def copies(scores: Tensor) -> Tensor:
    return torch.where(LATER, scores.detach(), scores).softmax(-1)


def high(scores: Tensor) -> Tensor:
    bound = scores.std().item()
    return scores.masked_fill(scores > bound, bound).softmax(-1)


def high_assigned(scores: Tensor) -> Tensor:
    bound, scores = scores.std().item(), scores.clone()
    scores[scores > bound] = bound
    return scores.softmax(-1)


def low(scores: Tensor) -> Tensor:
    bound = -scores.std().item()
    return torch.where(scores < bound, bound, scores).softmax(-1)


def band(scores: Tensor) -> Tensor:
    return scores.masked_fill(scores.abs() < scores.std() / 3, 0.0).softmax(-1)


def band_of_a_product(scores: Tensor) -> Tensor:
    return (scores * (scores.abs() > scores.std() / 2)).softmax(-1)


@pytest.mark.parametrize(
    "form",
    [
        renormalised, masked_behind, after_infinity, gated_rows, no_numbers, limited, diagonal, added, gated, cleared,
        with_a_small_number, divided_before, turned_back, by_a_sum, of_quotients, of_quotients_turned, exponentials,
        learned, pruned, copies, high, high_assigned, low, band, band_of_a_product,
    ],
)  # fmt: skip
def test_masks_that_leave_out_or_are_none_are_not_read(form: Callable[[Tensor], Tensor]) -> None:
    assert read(form) == []


def test_distances_below_zero_are_no_limit() -> None:
    first, _ = read(lambda scores: (-(scores - 9).abs() * (~LATER).float()).softmax(-1))
    assert first.share > 0.5


def test_targets_of_zero_do_not_mask_logarithms() -> None:
    target = torch.rand(ROWS, PLACES, PLACES, generator=torch.Generator().manual_seed(0)) * ~LATER
    first, _ = read(lambda scores: (scores * (~LATER).float()).log_softmax(-1) * target)
    assert first.log


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


def equal_tokens(step: int, fill: float) -> float:
    """Return the weight of padding behind a softmax over small scores of 6 different tokens."""
    torch.manual_seed(step)
    table, query = torch.nn.Embedding(6, WIDTH), torch.nn.Parameter(0.01 * torch.randn(WIDTH))
    tokens = torch.randint(6, (64, PLACES))
    padding = torch.arange(PLACES) >= torch.randint(2, PLACES, (64, 1))
    with capture_events() as events:
        values = table(tokens)
        shares = (values @ query).masked_fill(padding, fill).softmax(1)
        (shares.unsqueeze(1) @ values).square().mean().backward()
    return max((event.share for event in events if isinstance(event, MaskedScoresRead)), default=0.0)


@pytest.mark.parametrize("step", range(4))
def test_small_scores_of_equal_tokens_do_not_look_like_a_limit(step: int) -> None:
    assert equal_tokens(step, 1e-9) > 0.2
    assert equal_tokens(step, -1e9) == 0


def test_a_mask_of_queries_leaves_out_no_keys() -> None:
    first, second = read(whole_rows)
    assert first.queries
    assert second.queries
    assert 0.1 < first.share < 0.9
    assert not read(masked)[0].queries
