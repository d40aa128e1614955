import pytest

from truestep.events import LossComputed, Site, ValueUnread
from truestep.rules.result_never_read import ResultNeverRead
from truestep.testing import judge

LINE = Site("train.py", 12)


def found(*events):
    return judge(ResultNeverRead, events)


@pytest.mark.parametrize("kind", ["mask", "graph", "values"])
def test_a_result_of_each_step_is_named(kind):
    (finding,) = found(ValueUnread(name="known", kind=kind, site=LINE))
    assert finding.primary.site == LINE
    assert finding.message == "each step makes `known`, and nothing reads it"


def test_a_mask_made_once_is_named():
    (finding,) = found(ValueUnread(name="train_mask", kind="mask", again=False, site=LINE))
    assert finding.message == "the program makes `train_mask`, and nothing reads it"


def test_a_mask_that_a_function_ignores_is_named_at_the_parameter():
    place = Site("train.py", 5, 20, 5, 24, "masked_error")
    (finding,) = found(ValueUnread(name="mask", kind="argument", site=place))
    assert finding.primary.site == place
    assert finding.message == "`masked_error()` gets a mask in its `mask`, and does not read it"


def test_a_dropped_operation_is_named():
    (finding,) = found(ValueUnread(kind="masked_fill", site=LINE))
    assert finding.message == "the result of `masked_fill` is dropped: the tensor itself does not change"
    (finding,) = found(ValueUnread(kind="expression", site=LINE))
    assert "of an expression" in finding.message


@pytest.mark.parametrize(("size", "count"), [(4, 1), (7, 0)])
def test_weights_count_with_a_number_for_each_class_of_the_loss(size, count):
    loss = LossComputed(kind="cross_entropy", classes=4, site=Site("train.py", 20))
    weights = ValueUnread(name="weights", kind="weights", size=size, again=False, site=LINE)
    assert len(found(loss, weights)) == count


def test_a_state_that_is_not_carried_on_is_named():
    (finding,) = found(ValueUnread(name="h", kind="state", size=4, site=LINE))
    assert finding.primary.site == LINE
    assert (
        finding.message == "each call in a loop over a sequence begins from the same `h`: the next state is never read"
    )
    assert finding.seen.count == 4
