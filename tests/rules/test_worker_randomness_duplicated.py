import pytest

from truestep.events import BatchRead, LoaderMet, LoaderStarted, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.worker_randomness_duplicated import WorkerRandomnessDuplicated
from truestep.testing import judge

MADE = Site("train.py", 30, 9)


def met(**more):
    values = {
        "loader": 1,
        "name": "batches",
        "dataset_kind": "Simulated",
        "workers": 3,
        "batch_size": 8,
        "sampler": "random",
    } | more
    return LoaderMet(dataset=1, site=MADE, **values)


def passed(prints="aaabbb", variety=100):
    places = (0, 1, 3, 4)
    read = [BatchRead(loader=1, place=place, fingerprint=prints[place], variety=variety) for place in places]
    return [LoaderStarted(loader=1), *read]


def test_equal_batches_of_all_workers_are_found_where_the_loader_is_made():
    (finding,) = judge(WorkerRandomnessDuplicated, [met(), *passed() * 2])
    assert finding.primary.site == MADE
    assert finding.message == "3 workers of `batches` draw the same random samples"
    assert "Simulated" in finding.primary.label
    assert finding.seen.count == 2


@pytest.mark.parametrize(
    "events",
    [
        [met(), *passed("abcdef") * 3],
        [met(), *passed("aaaaaa") * 3],
        [met(), *passed("aaabcd") * 3],
        [met(), *passed(variety=2) * 3],
        [met(workers=1), *passed() * 3],
        [met(iterable=True), *passed() * 3],
        [met(batch_size=2), *passed() * 3],
        [met(batch_size=None), *passed() * 3],
        [met(sampler="sequential"), *passed() * 3],
        [met(sampler="own"), *passed() * 3],
        [met(), *passed()],
        [met(), *passed()[:-1]],
        [met(), *passed()[:3], *passed()[:1], *passed()[3:]],
    ],
    ids=[
        "different",
        "constant",
        "first only",
        "few values",
        "one worker",
        "other kind",
        "small batches",
        "own batches",
        "in order",
        "own order",
        "one pass",
        "short",
        "two passes",
    ],
)
def test_quiet(events):
    assert judge(WorkerRandomnessDuplicated, events) == []


def test_a_loader_that_cannot_be_compared_is_not_called_clear():
    rule, run = WorkerRandomnessDuplicated(), Progress()
    for event in (met(), *passed()[:2]):
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED
