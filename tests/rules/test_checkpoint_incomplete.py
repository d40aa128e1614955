import pytest

from truestep.events import CheckSkipped, ModelMet, PlainStateCompared, PlainStateSaved, RunEnded, Site
from truestep.findings import Outcome
from truestep.rules._rule import Progress
from truestep.rules.checkpoint_incomplete import CheckpointIncomplete
from truestep.testing import judge

SAVE = Site("train.py", 50)
MET = ModelMet(model=1, name="net")
DEPENDS = PlainStateCompared(model=1, depends=("norm.mean",))
SAVED = PlainStateSaved(model=1, missing=("norm.mean", "shadow"), site=SAVE)


@pytest.mark.parametrize("events", [[DEPENDS, SAVED], [SAVED, DEPENDS]], ids=["saved-after", "saved-before"])
def test_the_save_is_named_with_what_it_leaves_out(events):
    (finding,) = judge(CheckpointIncomplete, [MET, *events])
    assert finding.primary.site == SAVE
    assert finding.message == "the saved state of `net` lacks `norm.mean`, which its training has changed"
    assert "register_buffer('mean', ...)" in finding.help


@pytest.mark.parametrize(
    "events",
    [
        [DEPENDS],
        [SAVED],
        [PlainStateCompared(model=1), SAVED],
        [PlainStateCompared(model=1, depends=("other",)), SAVED],
        [PlainStateCompared(model=2, depends=("norm.mean",)), SAVED],
        [DEPENDS, PlainStateSaved(model=1, held=("norm.mean",), site=SAVE)],
    ],
    ids=["not-saved", "not-compared", "no-dependence", "another-attribute", "another-model", "held"],
)
def test_without_both_it_is_quiet(events):
    assert judge(CheckpointIncomplete, [MET, *events]) == []


def test_what_another_file_holds_is_not_lost():
    other = PlainStateSaved(model=1, held=("norm.mean",), site=Site("train.py", 51))
    assert judge(CheckpointIncomplete, [MET, DEPENDS, SAVED, other]) == []
    assert judge(CheckpointIncomplete, [MET, other, DEPENDS, SAVED]) == []


def test_a_run_that_was_cut_short_is_quiet():
    assert judge(CheckpointIncomplete, [MET, DEPENDS, SAVED], ended="interrupted") == []


def test_what_was_skipped_is_not_observed():
    rule, run = CheckpointIncomplete(), Progress()
    assert rule.verdict(run).reason == PlainStateCompared.absent
    rule.observe(CheckSkipped(check="state", reason="the state of the model was not checked: it is compiled"), run)
    assert rule.verdict(run).reason.endswith("it is compiled")
    run.note(DEPENDS)
    assert rule.verdict(run).reason.startswith("no save")
    run.note(PlainStateSaved(model=1))
    run.note(RunEnded(how="finished"))
    assert rule.verdict(run).outcome is Outcome.CLEAR
