"""Real trainings: healthy ones of many kinds give no alert, and planted failures give one at their step."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

from truestep import Run

pytestmark = pytest.mark.slow


def begun(**settings):
    return Run(seed=0, device="cpu", watch=False, progress=False, clip_norm=math.inf, **settings)


def images(size=1500):
    """Ten kinds of noisy patterns."""
    generator = torch.Generator().manual_seed(0)
    kinds = torch.randint(0, 10, (size,), generator=generator)
    patterns = torch.randn(10, 32, generator=generator)
    return patterns[kinds] + 1.5 * torch.randn(size, 32, generator=generator), kinds


def classified(batch_size=8, lr=0.05, optimizer=torch.optim.SGD, schedule=None, epochs=6, spoil=lambda step, x: x):
    run = begun(max_epochs=epochs)
    model = run.model(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10)))
    made = run.optimizer(optimizer(model.parameters(), lr=lr))
    if schedule:
        run.scheduler(schedule(made))
    x, y = images()
    loader = run.loader(torch.utils.data.TensorDataset(x[:1200], y[:1200]), batch_size=batch_size, shuffle=True)
    with run:
        for _ in run.epochs():
            for xs, ys in run.train(loader, model):
                loss = functional.cross_entropy(model(spoil(run.global_step, xs)), ys)
                run.step(loss)
                run.log({"loss": loss})
            with run.evaluate(model):
                run.log({"val_loss": functional.cross_entropy(model(x[1200:]), y[1200:])})
    return run


def adversarial():
    run = begun(max_epochs=12)
    generator = run.model(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
    critic = run.model(nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)))
    slow = run.optimizer(torch.optim.Adam(generator.parameters(), 2e-3))
    fast = run.optimizer(torch.optim.Adam(critic.parameters(), 2e-3))
    angles = torch.rand(2048) * 2 * math.pi
    loader = run.loader(torch.stack([angles.cos(), angles.sin()], 1), batch_size=32, shuffle=True)
    binary = functional.binary_cross_entropy_with_logits
    with run:
        for _ in run.epochs():
            for x in run.train(loader, generator, critic):
                made, ones = generator(torch.randn(len(x), 8)), torch.ones(len(x), 1)
                run.step(binary(critic(x), ones) + binary(critic(made.detach()), 0 * ones), optimizer=fast)
                run.step(binary(critic(made), ones), optimizer=slow)
    return run


def rewarded():
    run = begun(max_steps=1500)
    policy = run.model(nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 5)))
    run.optimizer(torch.optim.Adam(policy.parameters(), 1e-2))
    worth = torch.randn(4, 5)
    with run:
        for _ in run.steps(None, policy):
            seen = torch.randn(16, 4)
            chosen = torch.distributions.Categorical(logits=policy(seen))
            action = chosen.sample()
            reward = (seen @ worth).gather(1, action[:, None])[:, 0] + torch.randn(16)
            run.step(-(chosen.log_prob(action) * reward).mean())
    return run


HEALTHY = {
    "small batches": lambda: classified(batch_size=4, epochs=4),
    "batches of one": lambda: classified(batch_size=1, lr=0.01, epochs=2),
    "steps": lambda: classified(lr=0.1, schedule=lambda made: lr_scheduler.StepLR(made, 300, 0.1)),
    "warm restarts": lambda: classified(
        lr=0.1, schedule=lambda made: lr_scheduler.CosineAnnealingWarmRestarts(made, 200)
    ),
    "one cycle": lambda: classified(schedule=lambda made: lr_scheduler.OneCycleLR(made, 0.02, total_steps=900)),
    "Adam": lambda: classified(lr=1e-3, optimizer=torch.optim.Adam),
    "two players": adversarial,
    "a policy": rewarded,
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_healthy_trainings_give_no_alert(kind):
    assert HEALTHY[kind]().alerts == []


def test_inputs_that_lose_their_scale_are_reported_at_their_step():
    run = classified(spoil=lambda step, x: 1000 * x if 600 <= step < 640 else x)
    kinds = {alert.kind: alert.step for alert in reversed(run.alerts)}
    assert kinds["norm-spike"] == 601
    assert 603 <= kinds["spike"] <= 606
    assert [alert.name for alert in run.alerts][:2] == ["grad_norm", "the loss"]


def test_one_batch_that_is_broken_is_reported_by_its_norm():
    run = classified(spoil=lambda step, x: 1000 * x if step == 600 else x)
    assert [alert.step for alert in run.alerts if alert.kind == "norm-spike"] == [601]


def test_a_learning_rate_that_is_too_high_ends_in_an_alert():
    run = classified(lr=1e6, epochs=1)
    assert "not-finite" in {alert.kind for alert in run.alerts}
