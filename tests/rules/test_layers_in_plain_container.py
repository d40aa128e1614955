from truestep.events import (
    BackwardEnded,
    GradientsTaken,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParametersUnchanged,
    PlainTensorKept,
    Site,
    TapeRead,
    UnregisteredModuleCalled,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.layers_in_plain_container import LayersInPlainContainer
from truestep.testing import judge

LINE, CALL = Site("net.py", 14, 12), Site("train.py", 20, 8)
NET, BUILT = ModelMet(model=1, name="net", parameters=(1, 2), site=CALL), OptimizerBuilt(optimizer=1, parameters=(1, 2))
FIRST = UnregisteredModuleCalled(model=1, name="layers[0]", parameters=(5, 6), site=LINE)
SECOND = UnregisteredModuleCalled(model=1, name="layers[1]", parameters=(7, 8), site=LINE)


def step(reached=(1, 2, 5, 6, 7, 8), layers=(FIRST, SECOND)):
    return [ModelCalled(model=1), *layers, TapeRead(reached=reached), BackwardEnded(), OptimizerStepped(optimizer=1)]


def test_layers_in_a_list_are_found_at_the_line_that_calls_them():
    (finding,) = judge(LayersInPlainContainer, [NET, BUILT, *step() * 3])
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert "`layers[0]`, `layers[1]`: 4 parameters" in finding.primary.label
    assert finding.seen.count == 2
    assert "`self.layers` an `nn.ModuleList`" in finding.help


def test_layers_in_a_dict_are_advised_to_use_module_dict():
    layer = UnregisteredModuleCalled(model=1, name="heads['a']", parameters=(5,), site=LINE)
    (finding,) = judge(LayersInPlainContainer, [NET, BUILT, *step(layers=(layer,)) * 2])
    assert "`self.heads` an `nn.ModuleDict`" in finding.help


def test_layers_that_a_method_calls_are_models_of_their_own():
    called = UnregisteredModuleCalled(model=1, name="couplings[0]", parameters=(5, 6), by_method=True, site=LINE)
    itself, steps = ModelMet(model=3, parameters=(5, 6)), step(layers=(called,)) * 4
    kept = ParametersUnchanged(parameters=(5, 6), steps=20, random=(5,))
    (finding,) = judge(LayersInPlainContainer, [NET, itself, BUILT, *steps, kept])
    assert (finding.primary.site, finding.related, finding.seen.count) == (LINE, (), 4)
    later = OptimizerBuilt(optimizer=2, parameters=(5, 6))
    moved = ParametersUnchanged(parameters=(), steps=20, random=(5,), moved=(5, 6))
    loaded = ParametersUnchanged(parameters=(5, 6), steps=20)
    for healthy in ([*steps, kept, later], [*steps, moved], [*steps, loaded], [called, kept]):
        assert judge(LayersInPlainContainer, [NET, itself, BUILT, *healthy]) == []
    assert judge(LayersInPlainContainer, [NET, ModelMet(model=3, parameters=(5, 6, 7)), BUILT, *steps, kept]) == []


def test_one_call_is_quiet():
    assert judge(LayersInPlainContainer, [NET, BUILT, *step()]) == []


def test_a_teacher_without_gradients_is_quiet():
    assert judge(LayersInPlainContainer, [NET, BUILT, *step(reached=(1, 2)) * 4]) == []


def test_layers_that_an_optimizer_holds_are_quiet():
    built = OptimizerBuilt(optimizer=1, parameters=(1, 2, 5, 6, 7, 8))
    assert judge(LayersInPlainContainer, [NET, built, *step() * 4]) == []


def test_a_tied_layer_of_another_model_is_quiet():
    other = ModelMet(model=2, parameters=(5, 6, 7, 8))
    assert judge(LayersInPlainContainer, [NET, other, BUILT, *step() * 4]) == []


def test_a_perceptual_loss_of_which_nothing_is_trained_is_quiet():
    assert judge(LayersInPlainContainer, [NET, OptimizerBuilt(optimizer=1, parameters=(9,)), *step() * 4]) == []


def test_fresh_layers_are_left_to_their_own_rule():
    fresh = UnregisteredModuleCalled(model=1, parameters=(5, 6), site=LINE, fresh=True)
    assert judge(LayersInPlainContainer, [NET, BUILT, *step(layers=(fresh,)) * 4]) == []


def test_a_run_without_a_tape_is_not_observed():
    verdict = LayersInPlainContainer().verdict(Progress(met={ModelCalled, OptimizerBuilt}))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no readable autograd tape")


def test_plain_tensors_are_found_at_the_line_that_assigns_them():
    token = PlainTensorKept(model=1, kind="Net", name="token", site=LINE)
    (finding,) = judge(LayersInPlainContainer, [NET, BUILT, *[*step(layers=()), token] * 3])
    assert finding.message == "`self.token` of `Net` is a plain tensor: it is neither trained nor saved"
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.MEDIUM)
    assert judge(LayersInPlainContainer, [NET, *[*step(layers=()), token] * 3]) == []


def test_a_plain_tensor_with_gradients_is_sure_unless_derivatives_are_taken():
    factors = [PlainTensorKept(model=1, name=f"factors[{place}]", gradient=True, site=LINE) for place in (0, 1)]
    (finding,) = judge(LayersInPlainContainer, [NET, BUILT, *step(layers=()), *factors])
    assert finding.confidence is Confidence.HIGH
    assert judge(LayersInPlainContainer, [NET, BUILT, GradientsTaken(), *step(layers=()), *factors]) == []
