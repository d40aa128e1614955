"""reference-is-the-model: two names of one model, of which one stands for another model."""

from dataclasses import replace

from truestep.events import AverageOfItself, ModelAliased, ModelCalled, ModelMet, OptimizerStepped, Site
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
