"""The account of learning rates on hand-built events."""

from truestep.accounts import Rates
from truestep.events import LearningRateRead, OptimizerBuilt, OptimizerStepped, SchedulerBuilt, SchedulerStepped, Site
from truestep.rules import Progress

MADE, LINE = Site("train.py", 10, 8), Site("train.py", 12, 8)
ADAM = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1,), lr=0.1, site=MADE)
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)
COSINE = SchedulerBuilt(scheduler=1, name="cosine", kind="CosineAnnealingLR", optimizer=1, site=LINE)
PACE = SchedulerStepped(scheduler=1, optimizer_steps=1)


def read(*rates: float, optimizer: int = 1) -> LearningRateRead:
    return LearningRateRead(optimizer=optimizer, rates=rates)


def account(*events) -> Rates:
    run = Progress()
    for event in events:
        run.note(event)
    return run.rates


def test_a_run_without_steps_has_no_line():
    assert account(ADAM, read(0.1)).entry() is None


def test_a_constant_rate():
    entry = account(ADAM, read(0.1), *[STEP] * 9, read(0.1)).entry()
    assert entry.text == "0.1 throughout, no schedule"
    (line,) = entry.facts["lines"]
    assert (line["first"], line["last"], line["updates"], line["optimizers"]) == ([0.1], [0.1], 9, 1)


def test_a_schedule_is_named_with_its_line():
    entry = account(ADAM, COSINE, read(0.1), *[STEP, PACE] * 9, read(0.001)).entry()
    assert entry.text == "0.1 to 0.001 by CosineAnnealingLR (train.py:12)"
    (line,) = entry.facts["lines"]
    assert line["segments"] == [{"update": 0, "rates": [0.1]}, {"update": 9, "rates": [0.001]}]
    assert line["schedules"][0]["steps"] == 9


def test_a_schedule_that_was_never_stepped():
    text = account(ADAM, COSINE, read(0.1), *[STEP] * 9).entry().text
    assert text == "0.1 throughout, CosineAnnealingLR never stepped (train.py:12)"


def test_rates_that_the_script_sets():
    text = account(ADAM, read(0.1, 0.1), STEP, read(0.5, 0.5), STEP, read(0.1, 0.01)).entry().text
    assert text == "0.1 to 0.1 and 0.01 (at most 0.5), set by the script"


def test_optimizers_built_at_one_line_are_one():
    second = OptimizerBuilt(optimizer=2, name="opt", kind="Adam", parameters=(1,), lr=0.1, site=MADE)
    other = OptimizerStepped(optimizer=2, observed=1, fresh=1)
    text = account(ADAM, read(0.1), STEP, second, read(0.1, optimizer=2), other).entry().text
    assert text == "0.1 throughout, no schedule, 2 optimizers"


def test_another_optimizer_is_named():
    sgd = OptimizerBuilt(optimizer=2, name="sgd", kind="SGD", parameters=(2,), lr=0.01, site=LINE)
    other = OptimizerStepped(optimizer=2, observed=1, fresh=1)
    text = account(ADAM, sgd, read(0.1), read(0.01, optimizer=2), STEP, STEP, other).entry().text
    assert text == "0.1 throughout, no schedule; 0.01 throughout for SGD"


def test_a_second_optimizer_of_the_same_kind_is_named_by_its_line():
    second = OptimizerBuilt(optimizer=2, name="opt", kind="Adam", parameters=(2,), lr=0.1, site=LINE)
    other = OptimizerStepped(optimizer=2, observed=1, fresh=1)
    for rate, said in ((0.1, "the same"), (0.2, "0.2 throughout")):
        text = account(ADAM, second, read(0.1), read(rate, optimizer=2), STEP, STEP, other).entry().text
        assert text == f"0.1 throughout, no schedule; {said} for Adam (train.py:{LINE.line})"


def test_repeated_steps_count():
    run = Progress()
    for event in (ADAM, read(0.1)):
        run.note(event)
    run.cut()
    run.note(STEP)
    run.repeat(run.cut(), 99)
    assert run.rates.updates(1) == 100
