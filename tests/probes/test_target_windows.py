"""Windows of tokens that end with the word that the model is to predict."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import TargetsCompared
from truestep.testing import capture_events

WORDS, LENGTH = 20, 4
LIKE, DOG, LOVE, CAT, HATE, MILK = range(1, 7)
TOKENS = torch.tensor([[LIKE, DOG], [LOVE, CAT], [HATE, MILK]])


class Windowed(nn.Module):
    """A model of whole windows, or of all columns but the last ones."""

    def __init__(self, classes: int = WORDS, length: int = LENGTH) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, 6), nn.Linear(6 * length, classes)
        self.length = length

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embed(tokens[:, : self.length]).flatten(1))  # type: ignore[no-any-return]


def compared(net: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]], steps: int = 22) -> list[TargetsCompared]:
    """Train on batches of tokens and targets."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(steps):
            tokens, target = batch()
            F.cross_entropy(net(tokens), target).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, TargetsCompared)]


def uneven(column: int = LENGTH - 1) -> tuple[Tensor, Tensor]:
    """Return windows of words that are not equally frequent, and a column of theirs."""
    tokens = (WORDS * torch.rand(64, LENGTH) ** 4).long()
    return tokens, tokens[:, column]


def test_windows_that_end_with_their_targets_are_told() -> None:
    torch.manual_seed(0)
    (event,) = compared(Windowed(), uneven)
    assert (event.column, event.reads) == (LENGTH - 1, True)
    assert event.site is not None


@pytest.mark.parametrize(
    ("net", "batch"),
    [
        (Windowed(), lambda: (uneven()[0], uneven()[1])),
        (Windowed(), lambda: uneven(0)),
        (Windowed(length=3), uneven),
        (Windowed(classes=WORDS + 1), uneven),
        (Windowed(), lambda: (lambda one: (one, one[:, -1]))(torch.randint(0, WORDS, (64, LENGTH)))),
        (Windowed(), lambda: (lambda one: (one, one[:, -1]))(uneven()[0][:, :1].expand(-1, LENGTH).clone())),
    ],
    ids=["others", "first", "unread", "other classes", "drawn evenly", "a series that stays"],
)
def test_other_windows_are_not(net: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]]) -> None:
    torch.manual_seed(0)
    assert compared(net, batch) == []


def run(tmp_path, text: str) -> list[TargetsCompared]:
    """Run a program of two columns of words."""
    path = tmp_path / "train.py"
    names = {"torch": torch, "F": F, "net": Windowed(length=2), "TOKENS": TOKENS}
    lines = ["optimizer = torch.optim.SGD(net.parameters(), lr=0.01)", "for _ in range(22):"]
    lines += [f"    {line}" for line in text.splitlines()]
    lines += [
        "    F.cross_entropy(net(tokens), target).backward()",
        "    optimizer.step()",
        "    optimizer.zero_grad()",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    with capture_events() as events:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return [event for event in events if isinstance(event, TargetsCompared)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("tokens, target = TOKENS, TOKENS[:, 1]", 1),
        ("tokens, target = TOKENS[:2], TOKENS[:2, 1]", 0),
        ("tokens, target = TOKENS, TOKENS[:, 0]", 0),
        ("torch.randint(0, 4, (2,))\ntokens, target = TOKENS, TOKENS[:, 1]", 0),
    ],
    ids=["the words", "few targets", "the words before", "draws"],
)
def test_of_few_rows_all_are_compared(tmp_path, text: str, count: int) -> None:
    torch.manual_seed(0)
    assert len(run(tmp_path, text)) == count


def test_a_loss_that_names_the_last_token_as_its_target_is_not_told() -> None:
    torch.manual_seed(0)
    net = Windowed()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(22):
            tokens = uneven()[0]
            F.cross_entropy(net(tokens), tokens[:, -1]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert not [event for event in events if isinstance(event, TargetsCompared)]
