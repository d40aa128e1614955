"""Objects of a run: their names in messages."""

import pytest

from truestep import events as ev
from truestep.accounts import Accounts

MET = [
    ev.ModelMet(model=1, name="net", parameters=()),
    ev.OptimizerBuilt(optimizer=1, name="adam", kind="Adam", parameters=()),
    ev.SchedulerBuilt(scheduler=1, optimizer=1, kind="StepLR", name="schedule"),
    ev.LoaderMet(loader=1, name="train", dataset=1, batches=5),
]


@pytest.mark.parametrize(
    ("kind", "known", "unknown"),
    [
        ("model", "net", "model"),
        ("optimizer", "adam", "optimizer"),
        ("scheduler", "schedule", "scheduler"),
        ("loader", "train", "loader"),
    ],
)
def test_an_object_without_a_number_has_the_name_of_its_kind_and_not_that_of_the_first_one(kind, known, unknown):
    run = Accounts()
    for event in MET:
        run.note(event)
    name = getattr(run, f"{kind}_name")
    assert (name(1), name(2), name(None)) == (known, unknown, unknown)
