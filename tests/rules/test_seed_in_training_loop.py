import pytest

from truestep.events import BackwardEnded, DrawsRepeated, Event, ModelCalled, OptimizerStepped, Seeded, Site
from truestep.findings import Confidence
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
