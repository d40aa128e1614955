import pytest

from truestep.events import Event, ModelExported, ModelMet, RunEnded, Site
from truestep.findings import Confidence
from truestep.rules.exported_in_train_mode import ExportedInTrainMode
from truestep.testing import judge

EXPORT, SAVE = Site("train.py", 30), Site("train.py", 31)
MET: list[Event] = [ModelMet(model=1, name="net", parameters=(1, 2))]


def exported(**more):
    facts = {"name": "net", "by": "torch.jit.trace", "training": True, "layers": 1, "layer": "drop", "kind": "Dropout"}
    event = ModelExported(site=EXPORT, saved=SAVE, **(facts | more))
    return judge(ExportedInTrainMode, [*MET, event, RunEnded(how="finished")])


def test_a_program_with_dropout_in_train_mode_is_found():
    (finding,) = exported()
    assert (finding.primary.site, finding.confidence) == (EXPORT, Confidence.MEDIUM)
    assert finding.message == "`net` is exported in train mode, with `drop` (Dropout)"
    assert [mark.site for mark in finding.related] == [SAVE]


def test_further_layers_are_counted():
    (finding,) = exported(layers=3, layer="body.1", kind="BatchNorm1d")
    assert finding.message == "`net` is exported in train mode, with `body.1` (BatchNorm1d) and 2 more"


def test_a_layer_that_is_exported_alone_has_no_name():
    (finding,) = exported(layer="", kind="BatchNorm1d")
    assert finding.message == "`net` is exported in train mode, with BatchNorm1d"


@pytest.mark.parametrize("facts", [{"training": False, "layers": 0}, {"layers": 0}, {"training": False}])
def test_evaluation_mode_and_models_without_such_layers_are_quiet(facts):
    assert exported(**facts) == []
