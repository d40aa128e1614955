import pytest

from truestep.events import CountedRead, LossComputed, OptimizerStepped, PaddingRead, ReadingsRead, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.padding_in_loss import PaddingInLoss
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)


def look(share, site=LINE):
    return [PaddingRead(kind="cross_entropy", site=site, index=3, share=share), STEP]


def test_padding_at_three_looks_is_found_at_the_loss():
    (finding,) = judge(PaddingInLoss, [*look(72), *look(68), *look(75), *look(70)])
    assert finding.primary.site == LINE
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert (finding.seen.count, finding.seen.first_step) == (4, 0)
    assert finding.message == "padding counts in the loss as a target"
    assert finding.cost == "at least 68 % of the targets were padding at 4 sampled steps"
    assert finding.help.startswith("pass `ignore_index=3` to the loss")


@pytest.mark.parametrize(
    "shares",
    [(72, 68), (19, 10, 15, 17), (72, 0, 72, 68), (80, 80, 12), (90, 90, 90, 90, 0), (0, 0, 0, 0)],
    ids=["two looks", "less than a fifth", "not in a row", "a full batch", "full batches later", "ignored"],
)
def test_less_is_quiet(shares):
    assert judge(PaddingInLoss, [event for share in shares for event in look(share)]) == []


def test_less_padding_is_found_after_a_separate_end_token():
    ended = [PaddingRead(kind="cross_entropy", site=LINE, index=0, share=8, ended=True), STEP]
    (finding,) = judge(PaddingInLoss, ended * 3)
    assert finding.help == "pass `ignore_index=0` to the loss"
    little = [PaddingRead(kind="cross_entropy", site=LINE, index=0, share=4, ended=True), STEP]
    assert judge(PaddingInLoss, little * 3) == []


def test_one_label_of_all_padding_is_named():
    labels = [PaddingRead(kind="cross_entropy", site=LINE, index=0, share=40, labels=True), STEP]
    (finding,) = judge(PaddingInLoss, labels * 3)
    assert finding.primary.label == "label 0, that of all padding, counts as an ordinary target"
    assert "-100" in finding.help


def test_padding_alone_is_an_inverted_mask():
    alone = [PaddingRead(kind="cross_entropy", site=LINE, index=3, share=100, alone=True), STEP]
    (finding,) = judge(PaddingInLoss, alone * 3)
    assert (finding.message, finding.severity) == ("the loss counts padding alone", Severity.ERROR)
    assert finding.cost == "no real target changed the weights at 3 sampled steps"
    assert judge(PaddingInLoss, [*alone * 2, *look(0), *alone]) == []
    (finding,) = judge(PaddingInLoss, [*look(60), *alone * 2])
    assert finding.message == "padding counts in the loss as a target"


def test_two_losses_are_judged_by_themselves():
    other = Site("train.py", 30, 8)
    events = [event for _ in range(3) for event in (*look(60), *look(10, other))]
    assert [finding.primary.site for finding in judge(PaddingInLoss, events)] == [LINE]


def test_verdicts():
    run = Progress()
    run.note(LossComputed(kind="cross_entropy"))
    assert PaddingInLoss().verdict(run).reason == PaddingRead.absent
    run.note(PaddingRead(kind="cross_entropy"))
    assert PaddingInLoss().verdict(run).outcome is Outcome.CLEAR


def test_missing_readings_behind_a_mask_for_nan_are_found():
    call = Site("train.py", 8, 12)
    read = ReadingsRead(table="speed", value=0.0, share=0.15, made=call, site=LINE)
    (finding,) = judge(PaddingInLoss, [read] * 3)
    assert finding.primary.site == call
    assert finding.message == "15% of the targets are 0, far from all others, and the mask keeps them"
    assert judge(PaddingInLoss, [read] * 2) == []


def counted(kind: str, made: Site | None = None) -> list:
    return [CountedRead(kind=kind, value=0.0, made=made, site=LINE), STEP]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("alone", "the loss counts padding, and no target"),
        ("moved", "the mask of the loss is off by one position from its targets"),
        ("late", "the mask of the loss is one position late"),
        ("extra", "the loss counts one position of padding in each row"),
    ],
)
def test_masks_by_hand_are_found_at_the_loss(kind, message):
    made = Site("train.py", 20, 4)
    (finding,) = judge(PaddingInLoss, counted(kind, made) * 3)
    assert (finding.message, finding.primary.site) == (message, made)
    assert finding.severity is (Severity.ERROR if kind == "alone" else Severity.WARNING)
    assert finding.cost.endswith("at 3 sampled steps")


def test_other_masks_later_withdraw_the_finding():
    assert judge(PaddingInLoss, [*counted("alone") * 3, *counted("")]) == []
    assert judge(PaddingInLoss, counted("alone") * 2) == []
    assert judge(PaddingInLoss, [*counted("alone"), *counted("extra"), *counted("alone")]) == []
