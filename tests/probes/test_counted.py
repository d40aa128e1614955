"""Masks of losses by hand, next to the padding and the missing values of their targets."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import CountedRead
from truestep.testing import capture_events


def tagged(loss, seed: int = 0) -> list[CountedRead]:
    """Train a tagger with padding 0 and the labels 0 to 3."""
    torch.manual_seed(seed)
    embed, head = nn.Embedding(20, 8), nn.Linear(8, 4)
    optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()])
    with capture_events() as events:
        for _ in range(4):
            lengths = torch.randint(3, 11, (16,))
            tokens = torch.randint(1, 20, (16, 10)).masked_fill(torch.arange(10) >= lengths[:, None], 0)
            labels = tokens % 4
            loss(head(embed(tokens)), labels, lengths, tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, CountedRead)]


def until(lengths: Tensor) -> Tensor:
    return torch.arange(10) < lengths[:, None]


def product(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    return (F.cross_entropy(scores.transpose(1, 2), labels, reduction="none") * mask).sum() / mask.sum()


def selected(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    return F.cross_entropy(scores[mask], labels[mask])


def flat(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    each = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view(mask.shape)
    return each.masked_fill(~mask, 0.0).sum(1).div(mask.sum(1).clamp(min=1)).mean()


def gathered(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    each = -scores.log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    return torch.where(mask, each, torch.zeros(())).sum() / mask.sum()


FORMS = pytest.mark.parametrize("form", [product, selected, flat, gathered])


@FORMS
def test_an_inverted_mask_of_padding_is_read(form) -> None:
    events = tagged(lambda scores, labels, lengths, tokens: form(scores, labels, tokens == 0))
    assert [event.kind for event in events] == ["alone"] * 4


@FORMS
def test_one_position_of_padding_in_each_row_is_read(form) -> None:
    events = tagged(lambda scores, labels, lengths, tokens: form(scores, labels, until(lengths + 1)))
    assert [event.kind for event in events] == ["extra"] * 4
    events = tagged(
        lambda scores, labels, lengths, tokens: form(scores, labels, until(lengths + 1) & (torch.arange(10) > 0))
    )
    assert [event.kind for event in events] == ["late"] * 4


@FORMS
def test_a_mask_of_the_tokens_is_quiet(form) -> None:
    assert tagged(lambda scores, labels, lengths, tokens: form(scores, labels, until(lengths))) == []
    assert tagged(lambda scores, labels, lengths, tokens: form(scores, labels, labels == 1)) == []


def test_a_first_padding_that_ends_the_row_is_quiet() -> None:
    def ended(scores, labels, lengths, tokens):
        return product(scores, torch.where(tokens > 0, labels.clamp(min=1), 0), until(lengths + 1))

    assert tagged(ended) == []


def test_padding_in_another_term_is_quiet() -> None:
    def both(scores, labels, lengths, tokens):
        return product(scores, labels, until(lengths)) + 0.1 * product(scores, labels, ~until(lengths))

    assert tagged(both) == []


def imputed(loss, fill: float = 0.0) -> list[CountedRead]:
    """Train a model on rows with missing values."""
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    with capture_events() as events:
        for _ in range(4):
            there = torch.rand(32, 8) < 0.6
            x = torch.where(there, torch.randn(32, 8), torch.tensor(fill))
            loss(model(x), x, there.float()).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, CountedRead)]


def squared(out: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    return ((out - x).pow(2) * mask).sum() / mask.sum()


def of_torch(out: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    return (F.smooth_l1_loss(out, x, reduction="none") * mask).sum() / mask.sum()


def first(out: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    return ((x - out) * mask).abs().sum() / mask.sum()


ERRORS = pytest.mark.parametrize("error", [squared, of_torch, first])


@ERRORS
def test_an_inverted_mask_of_missing_values_is_read(error) -> None:
    events = imputed(lambda out, x, mask: error(out, x, 1 - mask))
    assert [event.kind for event in events] == ["alone"] * 4
    assert abs(events[0].value) < 1e-5


@ERRORS
def test_a_mask_one_position_off_is_read(error) -> None:
    events = imputed(lambda out, x, mask: error(out[:, 1:], x[:, 1:], mask[:, :-1]))
    assert [event.kind for event in events] == ["moved"] * 4


@ERRORS
def test_other_masks_are_quiet(error) -> None:
    assert imputed(error) == []
    assert imputed(lambda out, x, mask: error(out, x + 0.1 * torch.randn(32, 8), 1 - mask)) == []
    assert imputed(lambda out, x, mask: error(out[:, 1:], x[:, 1:], mask[:, 1:] * mask[:, :-1])) == []
    assert imputed(lambda out, x, mask: error(out[:, 1:], x[:, 1:], mask[:, :-1]), fill=-9.0) == []


def test_a_second_line_of_the_training_withdraws() -> None:
    def alternated(out, x, mask):
        (0.1 * squared(out, x, mask)).backward(retain_graph=True)
        return squared(out, x, 1 - mask)

    assert [event.kind for event in imputed(alternated)] in ([], ["alone", ""])


def masked(loss, *, steps: int = 4) -> list[str]:
    """Train a model of masked tokens; return the kinds of the events."""
    torch.manual_seed(0)
    embed, head = nn.Embedding(20, 8), nn.Linear(8, 20)
    optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()])
    with capture_events() as events:
        for _ in range(steps):
            tokens = torch.randint(0, 19, (16, 10))
            mask = torch.rand(16, 10) < 0.2
            loss(head(embed(tokens.masked_fill(mask, 19))), tokens, mask).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event.kind for event in events if isinstance(event, CountedRead)]


@FORMS
def test_a_mask_that_leaves_out_the_masked_tokens_is_read(form) -> None:
    assert masked(lambda scores, tokens, mask: form(scores, tokens, ~mask)) == ["kept"] * 4
    assert masked(form) == []


def test_masks_of_other_kinds_are_not_read() -> None:
    both = lambda scores, tokens, mask: selected(scores, tokens, mask) + selected(scores, tokens, ~mask)  # noqa: E731
    assert masked(both) == []
    tags = lambda scores, tokens, mask: selected(scores, (tokens + 1) % 19, ~mask)  # noqa: E731
    assert masked(tags) == []
    rare = lambda scores, tokens, mask: selected(scores, tokens, tokens > 4)  # noqa: E731
    assert masked(rare) == []
