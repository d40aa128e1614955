from truestep.events import (
    BackwardEnded,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    Site,
    StateLoaded,
    TapeRead,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.graph_cut import GraphCut
from truestep.testing import judge

BACKWARD, STEP = Site("train.py", 38, 8), Site("train.py", 41, 8)
NAMES = {1: "enc.weight", 2: "enc.bias", 3: "head.weight", 4: "head.bias"}
PARAMETERS = [ParameterMet(parameter=n, name=name, model=1) for n, name in NAMES.items()]
NET = ModelMet(model=1, name="net", parameters=(1, 2, 3, 4))
MET = [*PARAMETERS, NET, OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2, 3, 4))]
ALL = (1, 2, 3, 4)


def step(reached, forwarded=ALL, optimizer=1, calls=(1,), **more):
    read = TapeRead(site=BACKWARD, reached=reached, forwarded=forwarded, **more)
    called = [ModelCalled(model=m) for m in calls]
    return [*called, read, BackwardEnded(site=BACKWARD), OptimizerStepped(optimizer=optimizer, site=STEP)]


def test_parameters_before_a_cut_are_found_at_the_backward():
    (finding,) = judge(GraphCut, [*MET, *step((3, 4)) * 4, ParametersUnchanged(parameters=(1, 2), steps=4)])
    assert finding.primary.site == BACKWARD
    assert finding.related[0].site == STEP
    assert finding.confidence is Confidence.HIGH
    assert "2 of 4 parameters of `opt`" in finding.message
    assert "enc.weight, enc.bias" in finding.primary.label
    assert (finding.seen.count, finding.seen.first_step) == (4, 0)


def test_the_line_that_cuts_is_shown_where_it_is_known():
    cut = Site("train.py", 24, 8)
    (finding,) = judge(GraphCut, [*MET, *step((3, 4), cut=cut, cut_by=".detach()") * 4])
    assert finding.primary.site == cut
    assert [mark.site for mark in finding.related] == [BACKWARD, STEP]
    assert finding.primary.label == "cuts the graph"
    assert finding.help == "remove `.detach()` between these parameters and the loss"


def test_a_loss_made_again_from_a_number_reaches_nothing():
    (finding,) = judge(GraphCut, [*MET, *step((), leaf_root=True) * 3])
    assert "4 of 4" in finding.message


def test_an_encoder_of_its_own_before_a_detach_is_found():
    models = [ModelMet(model=1, parameters=(1, 2)), ModelMet(model=2, parameters=(3, 4))]
    met = [*PARAMETERS, *models, OptimizerBuilt(optimizer=1, parameters=ALL)]
    assert len(judge(GraphCut, [*met, *step((3, 4), calls=(1, 2)) * 3])) == 1
    assert judge(GraphCut, [*met, *step((3, 4), calls=(2, 1)) * 3]) == []


def test_fewer_than_three_tapes_are_quiet():
    assert judge(GraphCut, [*MET, *step((3, 4)) * 2]) == []


def test_a_whole_graph_is_quiet():
    assert judge(GraphCut, [*MET, *step(ALL) * 5]) == []


def test_detached_fakes_of_a_gan_are_quiet():
    models = [ModelMet(model=1, parameters=(1, 2)), ModelMet(model=2, parameters=(3, 4))]
    built = [OptimizerBuilt(optimizer=1, parameters=(1, 2)), OptimizerBuilt(optimizer=2, parameters=(3, 4))]
    critic = step((3, 4), optimizer=2, calls=(2, 1, 2))
    assert judge(GraphCut, [*PARAMETERS, *models, *built, *(critic * 5 + step(ALL, calls=(1, 2))) * 3]) == []


def test_two_optimizers_after_one_backward_are_judged_on_it():
    built = [OptimizerBuilt(optimizer=1, parameters=(1, 2)), OptimizerBuilt(optimizer=2, parameters=(3, 4))]
    both = [*step((3, 4), optimizer=2), OptimizerStepped(optimizer=1, site=STEP)]
    assert len(judge(GraphCut, [*PARAMETERS, NET, *built, *both * 3])) == 1
    unused_head = [*step((1, 2), optimizer=1), OptimizerStepped(optimizer=2, site=STEP)]
    assert judge(GraphCut, [*PARAMETERS, NET, *built, *unused_head * 3]) == []


def test_target_networks_in_no_optimizer_are_quiet():
    met = [*PARAMETERS, NET, OptimizerBuilt(optimizer=1, parameters=(3, 4))]
    assert judge(GraphCut, [*met, *step((3, 4)) * 5]) == []


def test_an_extra_head_whose_output_is_not_used_is_quiet():
    assert judge(GraphCut, [*MET, *step((1, 2)) * 5]) == []


def test_a_mask_token_beside_submodules_is_quiet():
    token = ParameterMet(parameter=9, name="mask_token", model=1)
    net = ModelMet(model=1, parameters=(9, *ALL))
    built = OptimizerBuilt(optimizer=1, parameters=(9, *ALL))
    assert judge(GraphCut, [*PARAMETERS, token, net, built, *step(ALL, forwarded=(9, *ALL)) * 5]) == []


def test_experts_that_run_now_and_then_are_quiet():
    assert judge(GraphCut, [*MET, *step((3, 4)) * 2, *step((3, 4), forwarded=(3, 4)) * 2]) == []


def test_a_warm_up_on_detached_features_is_taken_back():
    assert judge(GraphCut, [*MET, *step((3, 4)) * 5, *step(ALL)]) == []


def test_parameters_that_move_by_hand_are_taken_back():
    assert (
        judge(GraphCut, [*MET, *step((3, 4)) * 5, ParametersUnchanged(parameters=(7,), moved=(1, 2, 3, 4), steps=5)])
        == []
    )


def test_compiled_regions_are_not_observed():
    events = [*MET, *step((3, 4), opaque=True) * 5]
    assert judge(GraphCut, events) == []
    rule, run = GraphCut(), Progress()
    for event in events:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no readable autograd tape")


def without_grad(*more):
    """Four steps on the head, while the encoder runs under no_grad inside of the model."""
    cut = Site("train.py", 12, 13)
    facts = {"reached": (3, 4), "forwarded": (3, 4), "without_grad": (1, 2)}
    read = TapeRead(site=BACKWARD, cut=cut, cut_by="no_grad()", **facts)
    return [*MET, *more, *[ModelCalled(model=1), read, OptimizerStepped(optimizer=1, site=STEP)] * 4]


def test_a_part_that_runs_without_gradients_is_found_at_its_switch():
    (finding,) = judge(GraphCut, without_grad())
    assert finding.primary.site.line == 12
    assert finding.help == "remove `no_grad()` between these parameters and the loss"


def test_loaded_features_without_gradients_are_quiet():
    assert judge(GraphCut, without_grad(StateLoaded(module=1, parameters=(1, 2)))) == []


def test_behind_custom_functions_only_parameters_that_stay_are_found():
    reads = step((3, 4), opaque=True) * 12
    assert judge(GraphCut, [*MET, *reads]) == []
    still = ParametersUnchanged(parameters=(1, 2), moved=(3, 4), steps=10)
    (finding,) = judge(GraphCut, [*MET, *reads, still, *step((3, 4), opaque=True)])
    assert finding.primary.site == BACKWARD
