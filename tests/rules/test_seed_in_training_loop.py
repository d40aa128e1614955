from pathlib import Path

import pytest

from truestep.events import (
    BackwardEnded,
    DrawsRepeated,
    Event,
    LossRead,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    Seeded,
    Site,
)
from truestep.findings import Confidence, Finding
from truestep.rules.seed_in_training_loop import SeedInTrainingLoop
from truestep.testing import judge

LINE = Site("train.py", 12, 4)
SEED, DRAWN = Seeded(site=LINE), DrawsRepeated(site=LINE)
CALL = ModelCalled(model=1)
LOOK = ModelCalled(model=1, grad=False, tracked=False)


def step(optimizer: int = 1, drawn: bool = False) -> list[Event]:
    return [CALL, *([DRAWN] if drawn else []), BackwardEnded(), OptimizerStepped(optimizer=optimizer)]


def test_a_seed_in_each_epoch_is_found_at_its_line():
    first = [SEED, *step() * 4]
    later = [SEED, *step(drawn=True), *step() * 3]
    (finding,) = judge(SeedInTrainingLoop, [*first, *later * 4])
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.seen.count, finding.seen.first_step) == (4, 4)


def test_a_seed_in_each_step_is_found():
    assert judge(SeedInTrainingLoop, [SEED, *step(), *[SEED, *step(drawn=True)] * 4])


HEALTHY = {
    "one repetition": [SEED, *step(), SEED, *step(drawn=True), *step() * 8],
    "no numbers are drawn": [SEED, *step() * 4] * 6,
    "a new optimizer for each fold": [e for fold in range(6) for e in (SEED, *step(fold, drawn=fold > 0), *step(fold))],
    "other seeds": [e for n in range(6) for e in (Seeded(site=LINE, seed=n), *step() * 4)],
    "more seeds than are followed": [Seeded(site=LINE, seed=-1), *step(drawn=True)] * 6,
    "a seed for the evaluation": [*step() * 4, SEED, LOOK, DRAWN] * 6,
    "seeds of epochs come again in the next fold": [
        e for fold in range(4) for n in range(4) for e in (Seeded(site=LINE, seed=n), *step(fold, drawn=fold > 0))
    ],
}


@pytest.mark.parametrize("style", HEALTHY)
def test_healthy_style_is_quiet(style):
    assert judge(SeedInTrainingLoop, HEALTHY[style]) == []


RUN = "import statistics\ndef run():\n    torch.manual_seed(0)\n    return fit()\n"
LOSSES = (2.3, 2.1, 1.9, 1.6)


def trainings(
    tmp_path: Path, text: str, losses: tuple[tuple[float, ...], ...] = (LOSSES,) * 4, built: bool = True
) -> list[Finding]:
    path = tmp_path / "train.py"
    path.write_text(text)
    site = Site(str(path), 3, 4)
    events: list[Event] = []
    for number, values in enumerate(losses, 1):
        events += [Seeded(site=site), *([OptimizerBuilt(optimizer=number)] if built else [])]
        events += [one for value in values for one in (LossRead(value=value), OptimizerStepped(optimizer=number))]
    return judge(SeedInTrainingLoop, [*events, RunEnded(how="finished")])


AVERAGED = {
    "comprehension": RUN + "values = [run() for seed in range(4)]\nprint(statistics.mean(values))",
    "loop": RUN + "values = []\nfor k in range(4):\n    values.append(run())\n    print(f'run {k}')\n"
    "print(statistics.stdev(values))",
    "dict": RUN + "values = {}\nfor k in range(4):\n    values[k] = run()\nprint(statistics.stdev(values.values()))",
    "deeper": RUN + "def member():\n    return run()\nprint(torch.stack([member() for _ in range(4)]).mean(0))",
    "in place": "values = []\nfor k in range(4):\n    torch.manual_seed(0)\n    values.append(fit())\n"
    "print(np.mean(values))",
}


@pytest.mark.parametrize("text", AVERAGED.values(), ids=AVERAGED)
def test_equal_trainings_that_are_averaged_are_found(tmp_path: Path, text: str) -> None:
    (finding,) = trainings(tmp_path, text)
    assert finding.primary.site.line == 3
    assert finding.message.startswith("4 trainings are the same")
    assert finding.related[0].label == "repeats the training"


def test_trainings_that_differ_are_quiet(tmp_path: Path) -> None:
    text = AVERAGED["comprehension"]
    assert not trainings(tmp_path, text, losses=(LOSSES, LOSSES, LOSSES, (2.3, 2.1, 1.9, 1.5)))
    assert not trainings(tmp_path, text, losses=(LOSSES, LOSSES))
    assert not trainings(tmp_path, text, losses=((2.3, 2.1),) * 4)
    assert not trainings(tmp_path, text, built=False)


OTHER = {
    "a setting": RUN.replace("run()", "run(lr)") + "print(statistics.mean([run(lr) for lr in (1, 2, 3, 4)]))",
    "times": RUN + "import time\nprint(statistics.mean([run() for _ in range(4)]))",
    "compared": RUN + "a, *b = [run() for _ in range(4)]\nassert all(torch.equal(a, x) for x in b)\na.mean()",
    "not averaged": RUN + "values = [run() for _ in range(4)]\nprint(values)",
    "no loop": RUN + "values = [run(), run(), run(), run()]\nprint(statistics.mean(values))",
}


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_equal_trainings_for_another_purpose_are_quiet(tmp_path: Path, text: str) -> None:
    assert not trainings(tmp_path, text)


def test_many_trainings_are_counted_and_the_first_ones_are_kept(tmp_path: Path) -> None:
    (finding,) = trainings(tmp_path, AVERAGED["comprehension"], losses=(LOSSES,) * 70)
    assert finding.message.startswith("70 trainings are the same")
    assert not trainings(tmp_path, AVERAGED["comprehension"], losses=(*(LOSSES,) * 63, (2.3, 2.1, 1.9, 1.5)))
