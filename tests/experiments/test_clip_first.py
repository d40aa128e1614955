"""The remedy for a clip in the wrong place clips from the first step on, and leaves everything else as it was."""

from contextlib import ExitStack

import pytest
import torch
from torch import nn

from truestep.experiments.changes.remedies.clip_first import ClipFirst

MAKERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05),
}


def trained(make, clips, scheduled=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y = 5 * torch.randn(32, 4), torch.randn(32, 1)
    optimizer = make(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9) if scheduled else None
    steps = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if clips == "before":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if clips == "after":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    rate = optimizer.param_groups[0]["lr"]
    return [p.detach().clone() for p in model.parameters()], rate, len(steps)


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_clip_after_the_step_becomes_one_before_every_step(kind, scheduled):
    right, rate, steps = trained(MAKERS[kind], "before", scheduled)
    change = ClipFirst()
    with ExitStack() as stack:
        change.install(stack)
        mended, rate_of_mended, steps_of_mended = trained(MAKERS[kind], "after", scheduled)
    assert all(torch.equal(one, other) for one, other in zip(right, mended, strict=True))
    assert (rate_of_mended, steps_of_mended) == (rate, steps)
    assert change.applied == 5
    unclipped, _, _ = trained(MAKERS[kind], "after", scheduled)
    assert not torch.equal(unclipped[0], mended[0])


def test_a_step_on_other_gradients_is_not_taken_again():
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with ExitStack() as stack:
        ClipFirst().install(stack)
        (3 * weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        (4 * weight).sum().backward()
        nn.utils.clip_grad_norm_([weight], 1.0)
    assert torch.equal(weight.detach(), torch.full((2,), -2.0))
