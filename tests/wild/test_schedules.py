"""Every schedule of torch, made for epochs or for steps, and stepped per epoch or per batch: mistakes are found."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.optim import lr_scheduler as schedules
from torch.optim.swa_utils import SWALR
from torch.utils.data import DataLoader, TensorDataset

from truestep.findings import Confidence
from truestep.supervision import Session

EPOCHS, BATCHES = 10, 40
STEPS = EPOCHS * BATCHES
Make = Callable[[Any], Any]


def sequence(optimizer: Any, warm: int, then: Make) -> Any:
    warmup = schedules.LinearLR(optimizer, 0.01, 1.0, total_iters=warm)
    return schedules.SequentialLR(optimizer, [warmup, then(optimizer)], [warm])


FOR_EPOCHS: dict[str, Make] = {
    "StepLR": lambda o: schedules.StepLR(o, 3, 0.1),
    "MultiStepLR": lambda o: schedules.MultiStepLR(o, [5, 7], 0.1),
    "ExponentialLR": lambda o: schedules.ExponentialLR(o, 0.9),
    "MultiplicativeLR": lambda o: schedules.MultiplicativeLR(o, lambda epoch: 0.9),
    "LinearLR": lambda o: schedules.LinearLR(o, 1.0, 0.01, total_iters=EPOCHS),
    "PolynomialLR": lambda o: schedules.PolynomialLR(o, EPOCHS),
    "CosineAnnealingLR": lambda o: schedules.CosineAnnealingLR(o, EPOCHS),
    "LambdaLR, a power": lambda o: schedules.LambdaLR(o, lambda epoch: 0.9**epoch),
    "LambdaLR, a line to 0": lambda o: schedules.LambdaLR(o, lambda epoch: max(0.0, 1 - epoch / EPOCHS)),
    "LambdaLR, a line": lambda o: schedules.LambdaLR(o, lambda epoch: 1 - epoch / EPOCHS),
    "SequentialLR, cosine": lambda o: sequence(o, 2, lambda o: schedules.CosineAnnealingLR(o, EPOCHS - 2)),
    "SequentialLR, power": lambda o: sequence(o, 2, lambda o: schedules.ExponentialLR(o, 0.8)),
    "ChainedScheduler, cosine": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.1, 2), schedules.CosineAnnealingLR(o, EPOCHS)], optimizer=o
    ),
    "ChainedScheduler, power": lambda o: schedules.ChainedScheduler(
        [schedules.LinearLR(o, 0.1, total_iters=2), schedules.ExponentialLR(o, 0.9)], optimizer=o
    ),
}
FOR_STEPS: dict[str, Make] = {
    "LinearLR": lambda o: schedules.LinearLR(o, 1.0, 0.01, total_iters=STEPS),
    "PolynomialLR": lambda o: schedules.PolynomialLR(o, STEPS),
    "CosineAnnealingLR": lambda o: schedules.CosineAnnealingLR(o, STEPS),
    "OneCycleLR": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=STEPS),
    "LambdaLR, a warm-up": lambda o: schedules.LambdaLR(o, lambda step: min(1.0, step / 100)),
    "SequentialLR, cosine": lambda o: sequence(o, 100, lambda o: schedules.CosineAnnealingLR(o, STEPS - 100)),
    "ChainedScheduler, cosine": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.1, BATCHES), schedules.CosineAnnealingLR(o, STEPS)], optimizer=o
    ),
}
FITS_BOTH: dict[str, Make] = {
    "ConstantLR": lambda o: schedules.ConstantLR(o, 0.1, 5),
    "CyclicLR": lambda o: schedules.CyclicLR(o, 0.01, 0.1, step_size_up=5),
    "CosineAnnealingWarmRestarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 20),
    "SWALR": lambda o: SWALR(o, 0.01, anneal_epochs=5),
    "LinearLR, a warm-up": lambda o: schedules.LinearLR(o, 0.1, total_iters=5),
    "LambdaLR, switched off": lambda o: schedules.LambdaLR(o, lambda number: float(number < 4)),
}


def in_turns(kinds: Iterable[str]) -> list[Any]:
    """Return the parameters of a test: a third of the schedules for `make test`, the others for `make programs`."""
    return [pytest.param(kind, marks=[pytest.mark.program] if place % 3 else []) for place, kind in enumerate(kinds)]


def found(make: Make, *, per_batch: bool, epochs: int = EPOCHS, fraction: bool = False) -> list[Any]:
    """Train a tiny model and return the findings on its schedule, above low confidence."""
    torch.manual_seed(0)
    x = torch.randn(2 * BATCHES, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=2, shuffle=True)
    with Session() as session:
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        schedule = make(optimizer)
        for epoch in range(epochs):
            for number, (inputs, target) in enumerate(loader):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), target).backward()
                optimizer.step()
                if per_batch:
                    schedule.step(*[epoch + number / BATCHES] * fraction)
            if not per_batch:
                schedule.step()
    shown = [finding for finding in session.findings if finding.confidence is not Confidence.LOW]
    return [finding for finding in shown if finding.rule == "scheduler-wrong-cadence"]


@pytest.mark.parametrize("kind", in_turns(FOR_EPOCHS))
def test_a_schedule_of_epochs_stepped_per_batch_is_found(kind: str) -> None:
    assert len(found(FOR_EPOCHS[kind], per_batch=True)) == 1


@pytest.mark.parametrize("kind", in_turns(FOR_EPOCHS))
def test_a_schedule_of_epochs_stepped_per_epoch_is_quiet(kind: str) -> None:
    assert found(FOR_EPOCHS[kind], per_batch=False) == []


@pytest.mark.parametrize("kind", in_turns(FOR_STEPS))
def test_a_schedule_of_steps_stepped_per_epoch_is_found(kind: str) -> None:
    assert len(found(FOR_STEPS[kind], per_batch=False)) == 1


@pytest.mark.parametrize("kind", in_turns(FOR_STEPS))
def test_a_schedule_of_steps_stepped_per_batch_is_quiet(kind: str) -> None:
    assert found(FOR_STEPS[kind], per_batch=True) == []


@pytest.mark.parametrize("per_batch", [True, False], ids=["per batch", "per epoch"])
@pytest.mark.parametrize("kind", in_turns(FITS_BOTH))
def test_a_schedule_that_any_pace_fits_is_quiet(kind: str, per_batch: bool) -> None:
    assert found(FITS_BOTH[kind], per_batch=per_batch) == []


def test_warm_restarts_by_fractions_of_epochs_are_quiet() -> None:
    assert found(lambda o: schedules.CosineAnnealingWarmRestarts(o, 5), per_batch=True, fraction=True) == []


@pytest.mark.parametrize(
    "kind", ["StepLR", "CosineAnnealingLR", "PolynomialLR", "LambdaLR, a line", "LambdaLR, a line to 0"]
)
def test_what_went_wrong_within_the_first_epochs_is_found_there(kind: str) -> None:
    assert len(found(FOR_EPOCHS[kind], per_batch=True, epochs=2)) == 1
