"""The loss function before a backward pass, and its sign."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F

from truestep.probes.backward.signs import loss_function

OUT, Y = torch.randn(6, 3, requires_grad=True), torch.randint(0, 3, (6,))
TWO = torch.tensor(2.0, requires_grad=True)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: F.cross_entropy(OUT, Y), ("NllLoss", False)),
        (lambda: -F.cross_entropy(OUT, Y), ("NllLoss", True)),
        (lambda: -F.cross_entropy(OUT, Y, reduction="none").mean() / 4, ("NllLoss", True)),
        (lambda: -(-0.5 * F.mse_loss(OUT, OUT.detach() + 1)), ("MseLoss", False)),
        (lambda: F.mse_loss(OUT, OUT.detach() + 1, reduction="none").sum() * -1, ("MseLoss", True)),
        (lambda: -F.l1_loss(OUT, OUT.detach() + 1), ("L1Loss", True)),
        (
            lambda: -F.binary_cross_entropy_with_logits(OUT, OUT.sigmoid().detach()),
            ("BinaryCrossEntropyWithLogits", True),
        ),
        (lambda: -((OUT - 1) ** 2).mean(), ("MseLoss", True)),
        (lambda: (1 - OUT).square().sum(), ("MseLoss", False)),
        (lambda: -((OUT - 1) ** 4).mean(), ("", False)),
        (lambda: -((OUT - OUT.roll(1)) ** 2).mean(), ("", False)),
        (lambda: -(OUT**2).mean(), ("", False)),
        (lambda: OUT.log_softmax(1)[torch.arange(6), Y].mean(), ("NllLoss", True)),
        (lambda: -OUT.log_softmax(1).gather(1, Y[:, None]).squeeze(1).mean(), ("NllLoss", False)),
        (lambda: (OUT.log_softmax(1)[torch.arange(6), Y] * torch.randn(6)).mean(), ("", False)),
        (lambda: F.nll_loss(OUT, Y), ("", False)),
        (lambda: -(F.cross_entropy(OUT, Y) + 0.1 * F.mse_loss(OUT, OUT.detach() + 1)), ("NllLoss", True)),
        (lambda: -F.cross_entropy(OUT, Y) - F.cross_entropy(OUT, Y) / 2, ("", False)),
        (lambda: F.cross_entropy(OUT, Y) + 0.5, ("NllLoss", False)),
        (lambda: -F.cross_entropy(OUT, Y) + F.mse_loss(OUT, OUT.detach() + 1), ("", False)),
        (lambda: -F.cross_entropy(OUT, Y) + OUT.square().mean(), ("", False)),
        (lambda: TWO * F.cross_entropy(OUT, Y), ("", False)),
        (lambda: -OUT.mean(), ("", False)),
    ],
)
def test_the_sign_of_a_loss_function_is_read(loss, expected):
    assert loss_function(loss().grad_fn) == expected
