"""Remedies change nothing in programs without the failure that they mend."""

from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler as schedules
from torch.utils.data import DataLoader, TensorDataset

from truestep.experiments.changes import CHANGES, Aimed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(functional.dropout(self.body(x), 0.1, self.training))


def data(size=24):
    x = torch.randn(size, 4)
    return TensorDataset(x, x.sum(1, keepdim=True))


def evaluated(model, loader):
    model.eval()
    with torch.no_grad():
        total = sum(functional.mse_loss(model(x), y) for x, y in loader)
    model.train()
    return float(total)


def classifier(compiled=False):
    """Train with an evaluation, a schedule for epochs, one for a plateau, and the best weights kept."""
    model, loader, held_out = Net(), DataLoader(data(), 6, shuffle=True), DataLoader(data(8), 4)
    run = torch.compile(model, backend="eager") if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule, plateau = schedules.StepLR(optimizer, 2), schedules.ReduceLROnPlateau(optimizer, patience=1)
    best = {}
    for _ in range(4):
        for x, y in loader:
            optimizer.zero_grad()
            loss = functional.mse_loss(run(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield float(loss.detach())
        schedule.step()
        plateau.step(evaluated(model, held_out))
        best = {name: value.clone() for name, value in model.state_dict().items()}
        yield evaluated(model, held_out)
    model.load_state_dict(best)
    yield evaluated(model, held_out)


def compiled():
    """Train a compiled model."""
    yield from classifier(compiled=True)


def adversaries():
    """Train a GAN, the discriminator frozen for the step of the generator, with a moving average beside."""
    generator, critic = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)), Net()
    steps = [torch.optim.Adam(part.parameters(), lr=1e-2) for part in (generator, critic)]
    average = torch.optim.swa_utils.AveragedModel(generator)
    for x, _ in DataLoader(data(48), 8):
        steps[1].zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(8, 2))
        real_loss = critic(x).mean()
        real_loss.backward()
        fake_loss = -critic(fake).mean()
        fake_loss.backward()
        steps[1].step()
        critic.requires_grad_(False)
        steps[0].zero_grad()
        loss = critic(generator(torch.randn(8, 2))).mean()
        loss.backward()
        steps[0].step()
        critic.requires_grad_(True)
        average.update_parameters(generator)
        yield float(real_loss.detach() + fake_loss.detach() + loss.detach())


def accumulated():
    """Accumulate gradients, with a schedule for steps, a warm-up before it, and a scaler."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parts = [schedules.LinearLR(optimizer, 0.1, total_iters=2), schedules.CosineAnnealingLR(optimizer, 6)]
    schedule, scaler = schedules.SequentialLR(optimizer, parts, [2]), torch.amp.GradScaler("cpu", enabled=False)
    for number, (x, y) in enumerate(DataLoader(data(96), 6)):
        loss = functional.mse_loss(model(x), y) / 2
        scaler.scale(loss).backward()
        if number % 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
        yield float(loss.detach())


def recurrent():
    """Truncated backpropagation through time, and a penalty on gradients."""
    cell, head, carried = nn.LSTM(4, 5), nn.Linear(5, 1), None
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(6):
        x = torch.randn(3, 2, 4, requires_grad=True)
        output, carried = cell(x, carried)
        carried = tuple(one.detach() for one in carried)
        loss = head(output).pow(2).mean()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        optimizer.zero_grad()
        (loss + gradient.pow(2).mean()).backward()
        optimizer.step()
        yield float(loss.detach())


def fine_tuned():
    """Train on top of a frozen part in eval mode."""
    model = Net()
    model.body.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    for x, y in DataLoader(data(), 6):
        model.train()
        model.body.eval()
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        yield float(loss.detach())
        model.eval()
        model(x.requires_grad_()).sum().backward()
        yield float(x.grad.abs().sum())


PROGRAMS = [classifier, accumulated, fine_tuned]
PROGRAMS += [pytest.param(program, marks=pytest.mark.slow) for program in (adversaries, recurrent, compiled)]
MINE = [name for name, kind in CHANGES.items() if issubclass(kind, Aimed)]
MINE += ["drop-frozen-gradients", "freeze-in-earnest", "no-anomaly-mode"]


def run(program, seed=0):
    torch._dynamo.reset()
    torch.manual_seed(seed)
    return list(program())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_healthy_program_is_the_same_with_every_remedy(program):
    plain = run(program)
    assert len(set(plain)) > 4
    for name in MINE:
        change = CHANGES[name](idle=True) if issubclass(CHANGES[name], Aimed) else CHANGES[name]()
        with ExitStack() as stack:
            change.install(stack)
            assert run(program) == plain, name
        assert change.applied == 0, name
