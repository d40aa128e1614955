import pytest

from truestep.events import EdgesRead, LoaderMet, ModelCalled, ModelMet, SamplesCompared, Site
from truestep.findings import Confidence
from truestep.rules.batch_changes_output import BatchChangesOutput
from truestep.testing import judge

LINE, CALL = Site("net.py", 12, 8), Site("train.py", 30, 8)
MET = [ModelMet(model=1, name="net"), LoaderMet(loader=1, shuffled=True), LoaderMet(loader=2)]
TRAINED = [ModelCalled(model=1, site=CALL), ModelCalled(model=1, site=CALL)]


def mixed(kind="mean", **facts):
    return SamplesCompared(model=1, samples=32, mixed=True, cause="operation", kind=kind, site=LINE, **facts)


def test_the_operation_is_named_at_its_line():
    (finding,) = judge(BatchChangesOutput, [*MET, *TRAINED, mixed(), mixed()])
    assert finding.primary.site == LINE
    assert finding.message == "`mean` in `net` runs over the samples of a batch"
    assert (finding.confidence, finding.seen.count) == (Confidence.MEDIUM, 2)
    assert finding.related[0].site == CALL


def test_an_index_takes_one_sample():
    (finding,) = judge(BatchChangesOutput, [*MET, *TRAINED, mixed("select")])
    assert finding.message == "an index in `net` takes one of the samples of a batch"


def test_a_table_is_read_along_the_batch():
    compared = SamplesCompared(model=1, samples=32, mixed=True, cause="place", kind="places.weight", site=LINE)
    (finding,) = judge(BatchChangesOutput, [*MET, *TRAINED, compared])
    assert finding.message == "each sample gets the row of `places.weight` at its place in the batch"
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.MEDIUM)


@pytest.mark.parametrize(
    "compared",
    [
        SamplesCompared(model=1, samples=32, site=LINE),
        SamplesCompared(model=1, samples=32, mixed=True, site=LINE),
        SamplesCompared(model=1, samples=32, mixed=True, cause="softmax", kind="softmax", site=LINE),
        mixed(loader=2),
    ],
    ids=["not-mixed", "cause-unknown", "another-cause", "in-order"],
)
def test_another_outcome_is_quiet(compared):
    assert judge(BatchChangesOutput, [*MET, *TRAINED, compared]) == []


def test_a_batch_that_is_the_whole_data_set_is_quiet():
    whole = [ModelCalled(model=1, site=CALL), *[ModelCalled(model=1, site=CALL, same_input=True)] * 5]
    assert judge(BatchChangesOutput, [*MET, *whole, mixed()]) == []


def test_samples_are_repeated_in_another_order():
    compared = SamplesCompared(
        model=1, samples=32, mixed=True, cause="repeat", kind="repeat", before=(32,), after=(96,), site=LINE
    )
    (finding,) = judge(BatchChangesOutput, [*MET, *TRAINED, compared])
    assert finding.message == (
        "`repeat` in `net` repeats the samples of a batch in another order than the rows beside them"
    )
    assert "`repeat_interleave(3, dim=0)`" in finding.help
    assert finding.primary.site == LINE


WITHOUT = EdgesRead(model=1, graphs=16, nodes=90, edges=160, without=80, site=CALL)


def test_edges_of_the_first_graphs_only_are_found_in_two_batches():
    (finding,) = judge(BatchChangesOutput, [*MET, WITHOUT, WITHOUT])
    assert finding.message == "the edges of 16 graphs in a batch all join nodes of the first ones"
    assert (finding.primary.site, finding.seen.count) == (CALL, 2)


@pytest.mark.parametrize("others", [[], [EdgesRead(model=1, graphs=16, nodes=90, edges=160, site=CALL)] * 2])
def test_edges_of_one_batch_or_of_all_graphs_are_quiet(others):
    assert judge(BatchChangesOutput, [*MET, WITHOUT, *others]) == []
