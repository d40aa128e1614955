from truestep.events import LoaderMet, LossComputed, ModelCalled, SamplesCompared, Site
from truestep.findings import Confidence
from truestep.rules.view_instead_of_permute import ViewInsteadOfPermute
from truestep.testing import judge

VIEW = Site("train.py", 22, 20)
TRAINED = [LoaderMet(loader=1, shuffled=True), ModelCalled(model=1, loader=1)]
SHAPES = {"before": (25, 10, 4), "after": (10, 25, 4)}


def compared(**values):
    return SamplesCompared(**{"model": 1, "samples": 25, "mixed": True, "site": VIEW, **values})


def test_the_view_is_named_at_its_line():
    (finding,) = judge(ViewInsteadOfPermute, [*TRAINED, compared(cause="view", kind="view", **SHAPES)])
    assert finding.primary.site == VIEW
    assert finding.message == "a view of (25, 10, 4) as (10, 25, 4) scrambles the 25 samples of a batch"
    assert finding.confidence is Confidence.MEDIUM


def test_no_mixing_and_other_causes_are_quiet():
    quiet = [compared(mixed=False), compared(), compared(cause="batch_first", kind="LSTM", **SHAPES)]
    assert judge(ViewInsteadOfPermute, [*TRAINED, *quiet]) == []


def test_a_model_trained_in_the_order_of_a_series_is_quiet():
    trained = [LoaderMet(loader=1), ModelCalled(model=1, loader=1)]
    assert judge(ViewInsteadOfPermute, [*trained, compared(cause="view", kind="view", loader=1, **SHAPES)]) == []


def test_a_view_within_each_sample_is_found():
    event = compared(cause="view", kind="reshape", mixed=False, before=(25, 9, 4), after=(25, 4, 9))
    (finding,) = judge(ViewInsteadOfPermute, [*TRAINED, event])
    assert finding.message == "a reshape of (25, 9, 4) as (25, 4, 9) scrambles the dimensions of each sample"
    assert finding.cost == ""


def test_a_view_before_a_loss_is_found_at_the_loss():
    loss = LossComputed(kind="cross_entropy", site=VIEW, viewed=((16, 9, 4), (16, 4, 9)))
    (finding,) = judge(ViewInsteadOfPermute, [loss, loss])
    assert finding.primary.site == VIEW
    assert "(16, 9, 4) as (16, 4, 9)" in finding.message
    assert judge(ViewInsteadOfPermute, [LossComputed(kind="cross_entropy", site=VIEW)]) == []
