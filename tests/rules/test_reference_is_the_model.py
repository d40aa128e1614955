"""reference-is-the-model: two names of one model, of which one stands for another model."""

from dataclasses import replace

import pytest

from truestep.events import (
    AverageOfItself,
    LayersRepeated,
    ModelAliased,
    ModelCalled,
    ModelMet,
    OptimizerStepped,
    RatiosRead,
    RunEnded,
    Site,
)
from truestep.rules.reference_is_the_model import ReferenceIsTheModel
from truestep.testing import judge

BOUND, CALLED = Site("train.py", 9, 0), Site("train.py", 20, 8)
MET = ModelMet(model=1, name="policy", parameters=(1, 2), site=CALLED)
ALIAS = ModelAliased(model=1, name="reference", other="policy", site=BOUND)
WITH, WITHOUT = ModelCalled(model=1), ModelCalled(model=1, grad=False, tracked=False)
STEP = OptimizerStepped(optimizer=1, fresh=2)


def test_a_model_that_is_compared_with_itself_is_found_at_the_assignment():
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITHOUT, WITH, STEP] * 3, ALIAS])
    assert finding.message == "`reference` is `policy` itself, not a copy"
    assert finding.primary.site == BOUND
    assert finding.related[0].site == CALLED


def test_steps_before_the_comparison_do_not_count():
    assert judge(ReferenceIsTheModel, [MET, *[WITH, STEP] * 50, *[WITHOUT, WITH, STEP] * 3, ALIAS])


def test_a_model_that_runs_without_gradients_in_evaluations_is_quiet():
    assert judge(ReferenceIsTheModel, [MET, *[WITH, STEP, WITH, STEP, WITHOUT, WITH, STEP] * 9, ALIAS]) == []


def test_a_part_counts_by_its_own_calls():
    part = ModelAliased(model=1, name="target", other="online", whole=False, site=BOUND)
    assert judge(ReferenceIsTheModel, [MET, *[WITH, part, STEP] * 2]) == []
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITH, part, STEP] * 3])
    assert finding.message == "`target` is `online` itself, not a copy"


def test_without_a_line_of_the_assignment_the_call_is_named():
    alias = ModelAliased(model=1, name="ema", other="net")
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITHOUT, WITH, STEP] * 3, alias])
    assert finding.primary.site == CALLED


def test_an_ensemble_of_one_model_is_found_where_it_is_made():
    alias = ModelAliased(model=1, name="ensemble", other="ensemble[0]", times=3, site=BOUND)
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITH, STEP] * 5, WITHOUT, alias])
    assert (finding.message, finding.primary.site) == ("`ensemble` holds one model 3 times", BOUND)


def test_models_that_may_share_weights_are_found_if_they_get_the_same_input():
    alias = ModelAliased(model=1, name="nets", other="nets[0]", times=2, site=BOUND)
    trained = [MET, *[WITH, STEP] * 5, alias, WITHOUT]
    (finding,) = judge(ReferenceIsTheModel, [*trained, replace(WITHOUT, same_input=True)])
    assert finding.message == "`nets` holds one model 2 times"
    assert judge(ReferenceIsTheModel, [*trained, WITHOUT]) == []
    assert judge(ReferenceIsTheModel, [*trained, replace(WITH, same_input=True)]) == []


def test_an_average_that_is_written_with_itself_is_found_where_it_begins():
    (finding,) = judge(
        ReferenceIsTheModel, [AverageOfItself(name="ema", other="params", tensors=2, updated=CALLED, site=BOUND)]
    )
    assert (finding.message, finding.primary.site) == ("`ema` is `params` itself, not a copy", BOUND)
    assert [mark.label for mark in finding.related] == ["mixes it with itself"]


def repeats(tmp_path, text, kind="Linear", steps=4):
    path = tmp_path / "train.py"
    path.write_text(f"from torch import nn\n{text}\n")
    held = LayersRepeated(model=1, name="layers", kind=kind, times=3, path=str(path), site=Site(str(path), 9))
    stepped = [OptimizerStepped(optimizer=1)] * steps
    return judge(ReferenceIsTheModel, [held, *stepped, RunEnded(how="finished")])


@pytest.mark.parametrize(
    "text",
    [
        "layers = nn.ModuleList([nn.Linear(8, 8)] * 3)",
        "net = nn.Sequential(*[nn.Linear(8, 8), nn.ReLU()] * 3)",
        "layer = nn.Linear(8, 8)\nlayers = nn.ModuleList([layer for _ in range(3)])",
    ],
)
def test_a_list_that_repeats_one_layer_of_a_trained_model_is_found(tmp_path, text):
    (finding,) = repeats(tmp_path, text)
    assert finding.message == "`layers` holds one Linear in 3 places"
    assert finding.primary.site.line == text.count("\n") + 2
    assert not repeats(tmp_path, text, steps=1)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])", "Linear"),
        ("net = nn.Sequential(block, nn.ReLU(), block, nn.ReLU(), block)", "Block"),
        ("# the three layers share their weights\nlayers = nn.ModuleList([nn.Linear(8, 8)] * 3)", "Linear"),
        ("heads = [nn.Linear(8, 8)] * 3\nlayers = nn.ModuleList([block, block, block])", "Conv2d"),
        ("sizes = [8] * 3\nlayers = nn.ModuleList([block, block, block])", "Linear"),
    ],
)
def test_layers_in_several_places_without_such_a_list_are_quiet(tmp_path, text, kind):
    assert not repeats(tmp_path, text, kind)


RATIOS = RatiosRead(site=CALLED, made=BOUND, name="ratio")


def test_ratios_that_are_always_one_are_found_where_they_are_made():
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITH, RATIOS, STEP] * 3])
    assert finding.message == "the ratios of new to old probabilities are all 1, after updates with the same samples"
    assert finding.primary.label == "`ratio` compares the policy with itself"
    assert (finding.primary.site, finding.related[0].site) == (BOUND, CALLED)


def test_ratios_of_few_updates_or_that_differ_from_one_are_quiet():
    right = RatiosRead(site=CALLED, one=False)
    assert judge(ReferenceIsTheModel, [MET, *[WITH, RATIOS, STEP] * 2]) == []
    assert judge(ReferenceIsTheModel, [MET, *[WITH, RATIOS, STEP] * 4, right]) == []


def test_ratios_to_an_old_policy_that_is_the_new_one_are_found_at_its_name_only():
    alias = replace(ALIAS, name="old_policy")
    (finding,) = judge(ReferenceIsTheModel, [MET, *[WITHOUT, WITH, RATIOS, STEP] * 3, alias])
    assert finding.primary.site == BOUND
    assert finding.message == "`old_policy` is `policy` itself, not a copy"
