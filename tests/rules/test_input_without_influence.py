"""An ignored mask and lost samples are reported once for each model; inputs with influence are not."""

from truestep.events import ArgumentsCompared, CheckSkipped, InputsCompared, ModelMet, Site
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.input_without_influence import InputWithoutInfluence
from truestep.testing import judge

MET = ModelMet(model=1, name="model", parameters=(1, 2))
LINE = Site("train.py", 7)


def compared(**facts: object) -> InputsCompared:
    return InputsCompared(model=1, samples=8, site=LINE, **facts)  # type: ignore[arg-type]


def test_an_ignored_mask_is_reported_if_the_padding_matters():
    event = compared(inputs=("mask",), without=("mask",), padding=("mask",))
    (finding,) = judge(InputWithoutInfluence, [MET, event, event])
    assert finding.primary.site == LINE
    assert "`mask`" in finding.message
    assert finding.seen.count == 2


def test_a_mask_without_influence_alone_is_quiet():
    assert judge(InputWithoutInfluence, [MET, compared(inputs=("mask",), without=("mask",))]) == []


def test_lost_samples_are_reported_once_for_a_model():
    other = InputsCompared(model=1, samples=8, lost=True, site=Site("train.py", 20))
    (finding,) = judge(InputWithoutInfluence, [MET, compared(lost=True), other])
    assert "first of 8 samples" in finding.message


def each(training: bool = True, **facts: object) -> ArgumentsCompared:
    return ArgumentsCompared(model=1, training=training, site=LINE, **facts)  # type: ignore[arg-type]


def test_an_argument_is_reported_where_its_influence_ends():
    end = Site("model.py", 30)
    (finding,) = judge(InputWithoutInfluence, [MET, each(alive=("x",), dead=("t",), ends=end)])
    assert finding.primary.site == end
    assert [mark.site for mark in finding.related] == [LINE]
    assert "`t`" in finding.message


def test_an_argument_with_influence_in_any_call_is_quiet():
    dead, alive = each(alive=("x",), dead=("t",)), each(False, alive=("x", "t"))
    assert judge(InputWithoutInfluence, [MET, dead, alive]) == []
    assert judge(InputWithoutInfluence, [MET, alive, dead]) == []


def test_arguments_without_influence_in_evaluation_alone_are_quiet():
    assert judge(InputWithoutInfluence, [MET, each(False, alive=("x",), dead=("t",))]) == []


def test_what_was_skipped_is_not_observed():
    rule, run = InputWithoutInfluence(), Progress()
    assert rule.verdict(run).reason == InputsCompared.absent
    rule.observe(CheckSkipped(check="inputs", reason="the model was not checked: it has hooks"), run)
    assert rule.verdict(run).reason == "the model was not checked: it has hooks"


def test_sequences_of_which_only_the_first_position_counts_are_found_where_the_others_end():
    end = Site("model.py", 12)
    (finding,) = judge(InputWithoutInfluence, [MET, compared(first="x", ends=end)])
    assert finding.primary.site == end
    assert "first position of its `x` only" in finding.message
    assert [mark.site for mark in finding.related] == [LINE]
    assert finding.confidence is Confidence.LOW


def test_a_first_position_is_certain_if_an_operation_ran_over_the_others():
    (finding,) = judge(InputWithoutInfluence, [MET, compared(first="x", ends=Site("model.py", 12), unused=True)])
    assert finding.confidence is Confidence.MEDIUM


def test_samples_with_one_result_are_found_where_an_empty_position_is_read():
    read = Site("model.py", 9)
    (finding,) = judge(InputWithoutInfluence, [MET, compared(blank=7, read_at=read)])
    assert finding.primary.site == read
    assert "do not depend on 7 of 8 samples" in finding.message
    assert finding.confidence is Confidence.MEDIUM


def test_an_inverted_mask_of_padding_is_found():
    (finding,) = judge(InputWithoutInfluence, [MET, compared(only_padding="tokens")])
    assert "padding of its `tokens` only" in finding.message
