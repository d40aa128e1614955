"""The account of samples on hand-built events."""

import pytest

from truestep.accounts import Samples
from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    InputsRead,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    ModelCalled,
    RowsRead,
    SamplesShared,
    Site,
)
from truestep.rules import Progress

LINE = Site("train.py", 30, 8)
MET = LoaderMet(loader=1, name="loader", dataset=1, batches=3, sampler="random", shuffled=True, site=LINE)
VAL = LoaderMet(loader=2, name="val", dataset=2, batches=2, sampler="sequential")
PASS = [LoaderStarted(loader=1), *[BatchDrawn(loader=1), BackwardEnded(loader=1, written=1)] * 3, LoaderEnded(loader=1)]
EVALUATED = [LoaderStarted(loader=2), BatchDrawn(loader=2), BatchDrawn(loader=2), LoaderEnded(loader=2)]


def account(*events) -> Samples:
    run = Progress()
    for event in events:
        run.note(event)
    return run.samples


def test_passes_of_training_are_counted():
    entry = account(MET, VAL, *[*PASS, *EVALUATED] * 4).entry()
    assert entry.text == "4 passes, shuffled"
    loader, val = entry.facts["loaders"]
    assert (loader["passes"], loader["whole_passes"], loader["batches"], loader["trained_on"]) == (4, 4, 12, True)
    assert (val["passes"], val["batches"], val["trained_on"]) == (4, 8, False)


def test_a_pass_that_is_left_is_not_whole():
    entry = account(MET, *PASS, *PASS[:3]).entry()
    assert (entry.facts["loaders"][0]["passes"], entry.facts["loaders"][0]["whole_passes"]) == (2, 1)


def test_inputs_of_training_and_evaluation():
    trained = [InputsRead(model=1, mean=mean, spread=1.0, least=-3, most=3 + mean, shape=(8, 4)) for mean in (0.0, 2.0)]
    looked = InputsRead(model=1, training=False, mean=0.5, spread=0.25, shape=(100, 4))
    found = account(*trained, looked)
    assert found.entry().text == "inputs 1 +- 1.4 in training, 0.5 +- 0.25 in evaluation"
    assert found.inputs[1, True].spread == pytest.approx(2**0.5)
    assert found.entry().facts["inputs"][0] | {"site": None} == {
        "site": None, "model": "model", "training": True, "mean": 1.0, "spread": 1.414,
        "least": -3, "most": 5.0, "dtype": "float32", "shape": [8, 4], "calls_read": 2,
    }  # fmt: skip


def test_places_of_the_rows_of_a_table():
    reads = [
        RowsRead(model=1, table="x", rows=100, read=8, least=least, most=least + 20, site=LINE) for least in (30, 9)
    ]
    (table,) = account(MET, *PASS, *reads).entry().facts["tables"]
    assert table | {"site": None} == {"name": "x", "site": None, "rows": 100, "first": 9, "last": 50, "calls_read": 2}


@pytest.mark.parametrize(("shared", "only"), [(100, True), (99, False)])
def test_an_evaluation_on_samples_of_the_training_only(shared, only):
    looked = [LoaderStarted(loader=2), BatchDrawn(loader=2), ModelCalled(model=1, tracked=False, grad=False, loader=2)]
    compared = SamplesShared(loader=2, model=1, samples=100, shared=shared, outside=100 - shared)
    entry = account(MET, *PASS, *looked, compared, LoaderEnded(loader=2)).entry()
    assert ("evaluated on these samples only" in entry.text) == only
    assert entry.facts["loaders"][1]["samples_trained_on"] == shared


def test_a_run_without_data_has_no_line():
    assert account(LoaderMet(loader=1)).entry() is None
