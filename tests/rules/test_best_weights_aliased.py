from truestep.events import KeptTensorsChanged, ModelCalled, ModelMet, OptimizerStepped, Site, StateLoaded
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.best_weights_aliased import BestWeightsAliased
from truestep.testing import judge

TAKEN, LOADED = Site("train.py", 30, 20), Site("train.py", 40, 0)
NET = ModelMet(model=1, name="net", parameters=(1, 2), site=Site("train.py", 20, 8))
STEPS = [ModelCalled(model=1), OptimizerStepped(optimizer=1, observed=2, fresh=2)] * 20


def load(**more):
    return StateLoaded(site=LOADED, model=1, module=1, **more)


def test_live_weights_that_are_restored_are_found_where_they_were_taken():
    (finding,) = judge(BestWeightsAliased, [NET, *STEPS, load(taken=TAKEN, taken_steps=20)])
    assert finding.primary.site == TAKEN
    assert [mark.site for mark in finding.related] == [LOADED]
    assert "`net`" in finding.message
    assert "about 20 steps" in finding.cost
    assert (finding.seen.count, finding.seen.first_step) == (1, 20)


def test_every_load_counts():
    (finding,) = judge(BestWeightsAliased, [load(taken=TAKEN, taken_steps=10)] * 4)
    assert finding.seen.count == 4


def test_a_backup_that_is_overwritten_at_once_is_found():
    (finding,) = judge(BestWeightsAliased, [load(), load(taken=TAKEN, overwritten=True)])
    assert "after other weights were loaded" in finding.related[0].label


def test_copies_are_quiet():
    assert judge(BestWeightsAliased, [NET, *STEPS, load()]) == []


def test_weights_that_are_edited_through_a_kept_dict_are_quiet():
    assert judge(BestWeightsAliased, [*STEPS, *[load(taken=TAKEN, taken_steps=1)] * 50]) == []


def test_a_run_without_a_load_is_not_observed():
    verdict = BestWeightsAliased().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no load_state_dict")


KEPT = KeptTensorsChanged(name="best_params", best="best", value=0.25, tensors=2, read=LOADED, site=TAKEN)


def test_tensors_that_change_at_the_same_best_figure_are_found_where_they_were_kept():
    (finding,) = judge(BestWeightsAliased, [*STEPS, KEPT])
    assert finding.primary.site == TAKEN
    assert [mark.site for mark in finding.related] == [LOADED]
    assert "`best_params` holds the tensors that are trained" in finding.message
    assert finding.cost == "2 tensors changed while `best` stayed 0.25"


def test_kept_tensors_that_a_model_loads_again_are_one_finding():
    assert len(judge(BestWeightsAliased, [*STEPS, KEPT, load(taken=TAKEN, taken_steps=20)])) == 1
