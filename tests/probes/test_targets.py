"""Contents of targets: read at sampled steps, once for each place, and only where no target is left out later."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from truestep.events import Event, PaddingRead, ProbabilitiesRead
from truestep.testing import capture_events

LAYER = nn.Linear(4, 3)
X = torch.randn(8, 4)
SIGNS = torch.tensor([[-1.0, 1.0, 1.0]] * 8)


def read(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: F.binary_cross_entropy_with_logits(x, SIGNS), (33, -1.0, 1.0, True)),
        (lambda x: F.binary_cross_entropy_with_logits(x, 255 * (SIGNS > 0).float()), (67, 0.0, 255.0, True)),
        (lambda x: nn.BCEWithLogitsLoss(reduction="sum")(x, 1.2 * SIGNS.abs()), (0, 1.2, 1.2, True)),
        (lambda x: F.cross_entropy(x, 2 * SIGNS), (33, -2.0, 2.0, True)),
        (lambda x: F.cross_entropy(x, 5 * F.one_hot(torch.arange(8) % 3, 3).float()), (0, 0.0, 5.0, False)),
    ],
    ids=["signs", "bytes", "beyond one", "logits", "scaled one-hot"],
)
def test_labels_are_read(call: Callable[[torch.Tensor], torch.Tensor], told: tuple[object, ...]) -> None:
    with capture_events() as events:
        for _ in range(3):
            call(LAYER(X))
    (event,) = read(events, ProbabilitiesRead)
    assert isinstance(event, ProbabilitiesRead)
    assert (event.outside, event.lowest, event.highest, event.dense) == pytest.approx(told)


@pytest.mark.parametrize("loss", [F.binary_cross_entropy_with_logits, F.cross_entropy])
def test_swapped_arguments_are_read(loss: Callable[..., torch.Tensor]) -> None:
    with capture_events() as events:
        for _ in range(3):
            loss(SIGNS, LAYER(100 * X)).backward()
    (event,) = read(events, ProbabilitiesRead)
    assert isinstance(event, ProbabilitiesRead)
    assert event.swapped
    assert event.lowest < -1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.binary_cross_entropy_with_logits(x, SIGNS, weight=torch.ones(3)),
        lambda x: F.binary_cross_entropy_with_logits(x, SIGNS, reduction="none"),
        lambda x: F.binary_cross_entropy_with_logits(x.detach(), SIGNS),
        lambda x: F.binary_cross_entropy_with_logits(x, SIGNS.clone().requires_grad_()),
        lambda x: F.mse_loss(x, SIGNS),
        lambda x: F.cross_entropy(x, torch.arange(8) % 3),
        lambda x: torch.func.vmap(F.binary_cross_entropy_with_logits)(x, SIGNS),
    ],
    ids=["weights", "masked later", "a metric", "learnt labels", "a regression", "classes", "vmap"],
)
def test_other_labels_are_not(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with capture_events() as events:
        call(LAYER(X))
    assert not read(events, ProbabilitiesRead)
    assert not read(events, PaddingRead)


class Reader(nn.Module):
    def __init__(self, *, batch_first: bool = True, padding: int | None = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 4, padding_idx=padding)
        self.gru, self.head = nn.GRU(4, 4, batch_first=batch_first), nn.Linear(4, 9)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.embedding(tokens))[0])


TOKENS = torch.full((4, 9), 5).masked_fill(torch.arange(9) >= torch.tensor([[3], [5], [9], [3]]), 2)
AHEAD = TOKENS.flip(1)
PADDED = TOKENS == 2


@pytest.mark.parametrize(
    ("loss", "share"),
    [
        (lambda: F.cross_entropy(Reader()(TOKENS[:, :-1]).transpose(1, 2), TOKENS[:, 1:]), 50),
        (lambda: F.cross_entropy(Reader()(TOKENS[:, :-1]).flatten(0, 1), TOKENS[:, 1:].flatten()), 50),
        (lambda: F.cross_entropy(Reader()(TOKENS)[:, :-1].reshape(-1, 9), TOKENS[:, 1:].reshape(-1)), 50),
        (lambda: F.nll_loss(Reader()(TOKENS).log_softmax(2).flatten(0, 1), TOKENS.flatten()), 44),
        (lambda: F.cross_entropy(Reader(batch_first=False)(TOKENS.t()).flatten(0, 1), TOKENS.t().flatten()), 44),
        (lambda: F.cross_entropy(Reader()(TOKENS).flatten(0, 1), TOKENS.flatten(), ignore_index=2), 0),
        (lambda: F.cross_entropy((Reader()(TOKENS) * ~PADDED[..., None]).flatten(0, 1), TOKENS.flatten()), 0),
        (lambda: F.cross_entropy(Reader()(TOKENS).flatten(0, 1), AHEAD.flatten()), 0),
        (lambda: F.cross_entropy(Reader()(TOKENS).flatten(0, 1), TOKENS.roll(1, 1).flatten()), 0),
        (lambda: F.cross_entropy(Reader()(TOKENS)[:, -1], TOKENS[:, -1]), 0),
    ],
    ids=["rows", "flat", "shifted", "nll", "time first", "ignored", "masked", "ahead", "in the middle", "one a row"],
)
def test_padding_at_the_ends_of_rows_is_read(loss: Callable[[], torch.Tensor], share: int) -> None:
    with capture_events() as events:
        loss()
    (event,) = read(events, PaddingRead)
    assert isinstance(event, PaddingRead)
    assert (event.index, event.share) == (2, share)


@pytest.mark.parametrize(
    "loss",
    [
        lambda: F.cross_entropy(Reader(padding=None)(TOKENS).flatten(0, 1), TOKENS.flatten()),
        lambda: F.cross_entropy(Reader()(TOKENS).flatten(0, 1), TOKENS.flatten(), weight=torch.ones(9)),
        lambda: F.cross_entropy(Reader()(TOKENS).flatten(0, 1), TOKENS.flatten(), reduction="none"),
    ],
    ids=["no padding index", "weights", "masked later"],
)
def test_without_a_padding_index_of_the_classes_nothing_is_emitted(loss: Callable[[], torch.Tensor]) -> None:
    with capture_events() as events:
        loss()
    assert not read(events, PaddingRead)


TAGS = torch.arange(36).reshape(4, 9) % 3


@pytest.mark.parametrize(
    ("labels", "share"),
    [
        (TAGS.masked_fill(PADDED, 0), 44),
        (TAGS.masked_fill(PADDED, -100), 0),
        (TAGS, 0),
        (TAGS.masked_fill(PADDED & (torch.arange(4) > 0)[:, None], 0), 0),
    ],
    ids=["one label", "ignored", "each its own", "some of it"],
)
def test_one_label_for_all_padding_of_the_tokens_is_read(labels: torch.Tensor, share: int) -> None:
    with capture_events() as events:
        F.cross_entropy(Reader()(TOKENS)[..., :3].transpose(1, 2), labels)
        F.cross_entropy(Reader()(TOKENS)[..., :3].flatten(0, 1), labels.flatten())
    found = [(event.labels, event.share) for event in events if isinstance(event, PaddingRead)]
    assert found == [(True, share)] * 2


@pytest.mark.parametrize(
    ("weigh", "share", "alone"),
    [
        (lambda each, real: each.mean(), 44, False),
        (lambda each, real: (each * real).sum() / real.sum(), 0, False),
        (lambda each, real: each[real].mean(), 0, False),
        (lambda each, real: (each * ~real).mean(), 100, True),
        (lambda each, real: each[~real].sum(), 100, True),
        (lambda each, real: (each * (1 + real)).mean(), 44, False),
    ],
    ids=["all", "a product", "an index", "an inverted product", "an inverted index", "weights"],
)
def test_a_mask_by_hand_is_read_from_the_gradient(
    weigh: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], share: int, alone: bool
) -> None:
    with capture_events() as events:
        each = F.cross_entropy(Reader()(TOKENS).transpose(1, 2), TOKENS, reduction="none")
        assert not read(events, PaddingRead)
        weigh(each, TOKENS != 2).backward()
    (event,) = read(events, PaddingRead)
    assert isinstance(event, PaddingRead)
    assert (event.index, event.share, event.alone) == (2, share, alone)
