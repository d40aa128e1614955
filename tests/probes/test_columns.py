"""Outputs of a layer that a loss selects by their place: one twice, and another one not at all."""

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import ColumnsUnread
from truestep.testing import capture_events

X = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
Y = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
Loss = Callable[[Tensor], Tensor]


class Net(nn.Module):
    def __init__(self, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, outputs, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        head: Tensor = self.head(torch.relu(self.body(x)))
        return head


def unread(
    loss: Loss, outputs: int = 4, x: Tensor = X, decay: float = 0.0, bias: bool = True, other: Loss | None = None
) -> list[tuple[int, ...]]:
    """Train for 12 steps, the last ones with the other loss; return the outputs that no loss reads."""
    torch.manual_seed(0)
    model = Net(outputs, bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=decay)
    with capture_events() as events:
        for step in range(12):
            optimizer.zero_grad()
            (other if other is not None and step > 8 else loss)(model(x)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return [event.unread for event in events if isinstance(event, ColumnsUnread)]


def by_columns(*columns: int) -> Loss:
    return lambda out: torch.stack([(out[:, c] - Y[:, k]).square().mean() for k, c in enumerate(columns)]).sum()


def likelihood(out: Tensor) -> Tensor:
    mean, raw = out[:, :1], out[:, :-1]
    return F.gaussian_nll_loss(mean, Y[:, :1], F.softplus(raw))


def split_twice(out: Tensor) -> Tensor:
    first, _ = out.chunk(2, -1)
    return (first - Y[:, :2]).square().mean() + first.abs().mean() + out[:, :2].mean()


def parts(out: Tensor) -> Tensor:
    first, _, last = torch.split(out, [1, 1, 2], 1)
    return first.square().mean() + last.square().mean() + out[:, 0].mean()


def nested(out: Tensor) -> Tensor:
    part = out[..., 1:]
    return part[..., 0].mean() + part[..., 0].square().mean() + part[..., 2].square().mean() + out[..., 0].mean()


@pytest.mark.parametrize(
    ("loss", "outputs", "found"),
    [
        (by_columns(0, 1, 2, 2), 4, (3,)),
        (by_columns(0, 0), 2, (1,)),
        (likelihood, 2, (1,)),
        (split_twice, 4, (2, 3)),
        (nested, 4, (2,)),
        (lambda out: (one := out.unbind(1))[0].mean() + one[0].square().mean() + out[:, 0].mean(), 2, (1,)),
        (lambda out: out.view(4, 4, 2)[..., 1].mean() + out[:, 1].square().mean(), 2, (0,)),
        (parts, 4, (1,)),
    ],
)  # fmt: skip
def test_an_output_that_is_left_out_is_found(loss: Loss, outputs: int, found: tuple[int, ...]) -> None:
    assert unread(loss, outputs) == [found]


def test_weight_decay_moves_no_output_by_itself() -> None:
    assert unread(by_columns(0, 0), 2, decay=0.5) == [(1,)]


def test_sequences_and_layers_without_a_bias_are_followed() -> None:
    x = X.reshape(2, 8, 6)
    assert unread(lambda out: out[:, -1, 0].mean() + out[:, :, 0].square().mean(), 2, x) == [(1,)]
    assert unread(lambda out: out[:, -1, 0].mean() + out[:, :, 0].square().mean(), 2, x, bias=False) == [(1,)]
    assert unread(lambda out: out[..., 0].mean() + out[..., 0].square().mean(), 2, x.transpose(0, 1)) == [(1,)]


@pytest.mark.parametrize(
    ("loss", "outputs"),
    [
        (by_columns(0, 1, 2, 3), 4),
        (by_columns(0, 1, 2), 4),
        (lambda out: out[:, :3].square().mean() + out[:, :3].mean(), 8),
        (lambda out: out[:, 2].square().mean() + out[:, 2].mean(), 8),
        (lambda out: out[:, 0].mean() + out[:, 0].square().mean() + out.softmax(1)[:, 1].mean(), 2),
        (lambda out: out[:, 0].mean() + out[:, 0].square().mean() + out.norm(), 2),
        (lambda out: out.gather(1, torch.zeros(16, 1).long()).mean() + out[:, 0].square().mean(), 2),
        (lambda out: out[:, [0, 0]].square().mean(), 2),
        (lambda out: out.t()[0].mean() + out.t()[0].square().mean(), 2),
        (lambda out: out.flatten()[::2].mean() + out.flatten()[::2].square().mean(), 2),
        (lambda out: out[:8, 0].mean() + out[8:, 0].square().mean() + out[8:, 1].mean(), 2),
        (lambda out: (part := out[:, 0]).mean() + part.square().mean(), 2),
    ],
)  # fmt: skip
def test_other_selections_are_silent(loss: Loss, outputs: int) -> None:
    assert unread(loss, outputs) == []


def test_an_output_that_a_later_pass_reads_is_silent() -> None:
    assert unread(by_columns(0, 0), 2, other=by_columns(0, 1)) == []


def test_a_model_that_is_freed_is_found() -> None:
    def train() -> None:
        model = Net(2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(12):
            optimizer.zero_grad()
            by_columns(0, 0)(model(X)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    with capture_events() as events:
        train()
        gc.collect()
    assert [event.unread for event in events if isinstance(event, ColumnsUnread)] == [(1,)]
