from truestep.events import AxesRead, LoaderMet, LossComputed, ModelCalled, ModelMet, SamplesCompared, Site
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


CALL = Site("train.py", 40)
SCRAMBLED = {"rough": 0.5, "smooth": 0.2, "most": 1.9, "order": "height, width, channel"}


def read(**values):
    return AxesRead(**{"model": 1, "samples": 16, "shape": (3, 32, 32), "site": CALL, **values})


def test_images_are_found_at_their_view_after_two_reads():
    event = read(**SCRAMBLED, view=VIEW)
    assert judge(ViewInsteadOfPermute, [event]) == []
    (finding,) = judge(ViewInsteadOfPermute, [event, event])
    assert finding.primary.site == VIEW
    assert [mark.site for mark in finding.related] == [CALL]
    assert "stored with the channels last" in finding.message
    assert finding.confidence is Confidence.MEDIUM


def test_images_without_a_known_view_are_found_at_the_call():
    event = read(**{**SCRAMBLED, "order": "channel, height, width"})
    (finding,) = judge(ViewInsteadOfPermute, [event, event])
    assert finding.primary.site == CALL
    assert "stored with the channels first" in finding.message


def test_images_in_the_right_order_in_any_call_are_quiet():
    right, wrong = read(rough=0.2, smooth=0.5, most=0.3, order="height, width, channel"), read(**SCRAMBLED)
    assert judge(ViewInsteadOfPermute, [right, wrong, wrong, wrong]) == []
    assert judge(ViewInsteadOfPermute, [wrong, wrong, right]) == []


def test_rough_images_and_a_few_periodic_ones_are_quiet():
    for changed in ({"rough": 1.1, "smooth": 0.9, "most": 1.1}, {"rough": 1.6, "smooth": 0.9}, {"most": 1.1}):
        event = read(**{**SCRAMBLED, **changed})
        assert judge(ViewInsteadOfPermute, [event, event, event]) == []


def test_flipped_images_neither_show_nor_deny_the_failure():
    wrong, flipped = read(**SCRAMBLED), read(rough=0.5, smooth=0.48, most=1.0, order="height, width, channel")
    (finding,) = judge(ViewInsteadOfPermute, [flipped, wrong, flipped, wrong])
    assert finding.seen.count == 2


def test_classes_are_exact():
    event = read(classes=True, order="height, width, channel", shape=(4, 60))
    (finding,) = judge(ViewInsteadOfPermute, [event, event])
    assert "the classes that" in finding.message
    assert judge(ViewInsteadOfPermute, [event, event, read(classes=True, shape=(4, 60))]) == []


def test_features_of_the_head_of_a_decoder_are_no_images():
    event = read(**SCRAMBLED)
    head, whole = (ModelMet(model=n, name=f"net{n}", parameters=held) for n, held in ((1, (3, 4)), (2, (1, 2, 3, 4))))
    assert judge(ViewInsteadOfPermute, [whole, head, event, event]) == []
    assert judge(ViewInsteadOfPermute, [head, event, event, whole, event]) == []
    assert len(judge(ViewInsteadOfPermute, [head, event, event])) == 1
