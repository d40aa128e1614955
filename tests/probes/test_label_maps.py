"""Images that come again with the same label map, but flipped, rotated or shifted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import MapsPaired
from truestep.testing import capture_events

Pair = tuple[Tensor, Tensor]


def paired(
    turn: Callable[[Tensor, Tensor], Pair],
    back: Callable[[Tensor], Tensor] = lambda out: out,
    *,
    fits: bool = True,
) -> list[MapsPaired]:
    """Train on images and maps, of which every other batch is turned."""
    torch.manual_seed(0)
    maps = torch.randint(0, 3, (12, 8, 8))
    images = (maps[:, None] if fits else torch.zeros(12, 1, 8, 8)) + 0.5 * torch.randn(12, 1, 8, 8)
    net = nn.Conv2d(1, 3, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with capture_events() as events:
        for step in range(5):
            x, y = turn(images, maps) if step % 2 else (images, maps)
            out = net(x)
            F.cross_entropy(back(out) if step % 2 else out, y).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, MapsPaired)]


@pytest.mark.parametrize(
    ("turn", "how"),
    [
        (lambda x, y: (x.flip(-1), y), "flipped"),
        (lambda x, y: (x.rot90(1, (2, 3)), y), "rotated"),
        (lambda x, y: (x.roll(3, -2), y), "shifted"),
    ],
)
def test_images_that_are_turned_alone_are_found(turn: Callable[[Tensor, Tensor], Pair], how: str) -> None:
    event = paired(turn)[0]
    assert (event.rows, event.how) == (12, how)
    assert event.turned >= 8 <= event.maps


@pytest.mark.parametrize(
    "turn",
    [
        lambda x, y: (x.flip(-1), y.flip(-1)),
        lambda x, y: (x.rot90(1, (2, 3)), y.rot90(1, (1, 2))),
        lambda x, y: (x.flip(-1) + 0.1, y),
        lambda x, y: (x.flip(-1), torch.ones_like(y)),
        lambda x, y: (torch.randn_like(x), y),
    ],
    ids=["both flipped", "both rotated", "other values", "another map", "other images"],
)
def test_other_changes_are_not(turn: Callable[[Tensor, Tensor], Pair]) -> None:
    assert paired(turn) == []


def test_results_that_are_turned_back_are_not() -> None:
    backwards = torch.eye(8).flip(0)
    for back in (
        lambda out: out.flip(-1),
        lambda out: out @ backwards,
        lambda out: torch.stack(out.unbind(-1)[::-1], -1),
    ):
        assert paired(lambda x, y: (x.flip(-1), y), back) == []


def test_maps_that_say_nothing_of_the_pixels_are_not() -> None:
    assert paired(lambda x, y: (x.flip(-1), y), fits=False) == []
