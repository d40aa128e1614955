from truestep.events import ModelCalled, ModelMet, OptimizerBuilt, Site, UnregisteredModuleCalled
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.layer_created_in_forward import LayerCreatedInForward
from truestep.testing import judge

LINE, CALL = Site("net.py", 14, 12), Site("train.py", 20, 8)
NET = ModelMet(model=1, name="net", parameters=(1, 2), site=CALL)


def call(*numbers, fresh=True):
    layers = [UnregisteredModuleCalled(model=1, parameters=(n,), fresh=fresh, site=LINE) for n in numbers]
    return [ModelCalled(model=1), *layers]


def test_a_layer_created_in_every_forward_is_found_at_its_line():
    (finding,) = judge(LayerCreatedInForward, [NET, *call(5), *call(6), *call(7)])
    assert finding.primary.site == LINE
    assert finding.related[0].site == CALL
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert "a new Linear" in finding.message
    assert "__init__" in finding.help


def test_layers_created_in_the_first_call_only_are_quiet():
    assert judge(LayerCreatedInForward, [NET, *call(5, 6, 7), *call(5, 6, 7, fresh=False) * 3]) == []


def test_new_layers_that_an_optimizer_holds_are_quiet():
    assert judge(LayerCreatedInForward, [NET, OptimizerBuilt(optimizer=1, parameters=(5, 6)), *call(5), *call(6)]) == []


def test_a_run_without_a_model_is_not_observed():
    verdict = LayerCreatedInForward().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no model call")
