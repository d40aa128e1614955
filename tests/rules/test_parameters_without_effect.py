"""parameters-without-effect: parameters that an optimizer holds, and that no loss moves."""

import pytest

from truestep.events import (
    ColumnsUnread,
    InputRepeated,
    LayerRan,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    RunEnded,
    Site,
    StateLoaded,
    TapeRead,
    TwinIdle,
)
from truestep.findings import Confidence
from truestep.rules.parameters_without_effect import ParametersWithoutEffect
from truestep.testing import judge

BUILT, CALLED = Site("train.py", 12, 4), Site("train.py", 30, 4)
INNER, USED, UNUSED = Site("train.py", 3, 8), Site("train.py", 7, 8), Site("train.py", 8, 8)
NAMES = ("body.weight", "body.bias", "side.weight", "side.bias")
MET = [
    *(ParameterMet(parameter=n, name=f"net.{name}", model=1) for n, name in enumerate(NAMES, 1)),
    ModelMet(model=1, name="net", parameters=(1, 2, 3, 4), site=CALLED),
    OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2, 3, 4), site=BUILT),
]
BODY = LayerRan(parameters=(1, 2), site=USED, outer=USED)


def found(side=(UNUSED, UNUSED), reached=(1, 2), moved=(1, 2), zero=(), steps=12, how="finished", met=MET, more=()):
    ran = [] if side is None else [LayerRan(parameters=(3, 4), site=side[0], outer=side[1])]
    still = tuple(p for p in (1, 2, 3, 4) if p not in moved)
    trained = [
        event for _ in range(steps) for event in (TapeRead(reached=reached), OptimizerStepped(optimizer=1, fresh=2))
    ]
    looked = ParametersUnchanged(parameters=still, moved=moved, zero=zero, steps=steps)
    return judge(ParametersWithoutEffect, [*met, BODY, *ran, *trained, looked, *more, RunEnded(how=how)])


def test_a_layer_with_an_unused_output_is_found_where_it_runs():
    (finding,) = found()
    assert finding.primary.site == UNUSED
    assert finding.message == "`opt` holds 2 parameters that got no gradient in the whole run"
    assert finding.primary.label == "net.side.weight, net.side.bias: no loss reaches it"
    assert finding.related[0].site == BUILT
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.seen.count, finding.seen.total) == (2, 4)


def test_an_optimizer_with_gradients_of_zeros_only_is_found():
    (finding,) = found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), zero=(1, 2, 3, 4))
    assert finding.primary.site == BUILT
    assert finding.message == "all gradients of the 4 parameters of `opt` are zero"
    assert (finding.seen.count, finding.seen.total) == (4, 4)


def test_a_line_that_layers_in_use_share_is_not_named():
    (finding,) = found(side=(INNER, UNUSED))
    assert finding.primary.site == INNER
    (finding,) = found(side=(USED, UNUSED))
    assert finding.primary.site == UNUSED
    (finding,) = found(side=(USED, USED))
    assert finding.primary.site == CALLED


def test_gradients_of_zeros_are_found_though_the_optimizer_writes():
    (finding,) = found(reached=(1, 2, 3, 4), moved=(1, 2, 3, 4), zero=(3, 4))
    assert finding.message == "`opt` holds 2 parameters that got gradients of zeros only"


def test_a_variable_that_is_read_as_a_number_is_found_at_the_optimizer():
    met = [
        *MET,
        ParameterMet(parameter=5, name="tau"),
        OptimizerBuilt(optimizer=2, name="o", parameters=(1, 5), site=BUILT),
    ]
    looked = ParametersUnchanged(parameters=(3, 4, 5), moved=(1, 2), steps=12)
    findings = found(reached=(1, 2, 3, 4), more=[looked], met=met)
    assert [finding.primary.site for finding in findings] == [BUILT]
    assert "tau" in findings[0].primary.label


def test_layers_that_never_ran_are_quiet():
    assert found(side=None) == []


def test_parts_of_a_layer_in_use_are_quiet():
    assert found(reached=(1, 2, 3), moved=(1, 2, 3)) == []


def test_one_of_several_like_blocks_is_quiet():
    names = ("net.blocks.0.back.weight", "net.blocks.0.back.bias", "net.blocks.1.back.weight", "net.blocks.1.back.bias")
    met = [ParameterMet(parameter=n, name=name, model=1) for n, name in enumerate(names, 1)]
    assert found(met=[*met, *MET[4:]]) == []


def test_loaded_and_frozen_layers_are_quiet():
    assert found(met=[*MET, StateLoaded(model=1, parameters=(3, 4))]) == []
    assert found(more=[ParametersUnchanged(parameters=(), moved=(1, 2), frozen=(3, 4), steps=12)]) == []


def test_short_and_broken_runs_and_idle_optimizers_are_quiet():
    assert found(steps=9) == []
    assert found(how="crashed") == []
    assert found(moved=()) == []


TWIN = TwinIdle(parameters=(3, 4), name="side", twin="body", first=INNER, site=USED)


def test_a_layer_that_never_ran_is_found_where_another_one_ran_in_its_place():
    (finding,) = found(side=None, more=[TWIN])
    assert finding.primary.site == USED
    assert finding.message == "`side` never ran, and `body` ran in two places"
    assert [mark.site for mark in finding.related] == [INNER]


def test_a_layer_that_ran_later_or_that_no_optimizer_holds_is_quiet():
    assert found(more=[TWIN], reached=(1, 2, 3, 4), moved=(1, 2, 3, 4)) == []
    assert found(side=None) == []
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2), site=BUILT)
    assert found(side=None, more=[TWIN], met=[*MET[:-1], built]) == []
    installed = ModelMet(model=1, name="net", parameters=(1, 2, 3, 4), installed=True, site=CALLED)
    assert found(side=None, more=[TWIN], met=[*MET[:-2], installed, MET[-1]]) == []


def test_weights_that_are_loaded_after_the_training_are_no_excuse():
    (finding,) = found(more=[StateLoaded(model=1, parameters=(1, 2, 3, 4))])
    assert finding.primary.site == UNUSED


JOINED = InputRepeated(parameter=1, width=8, inputs=16, site=USED)


def test_a_layer_that_gets_a_result_twice_is_found_where_it_is_joined():
    (finding,) = found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), more=[JOINED] * 3)
    assert finding.message == "8 of the 16 inputs of `net.body` repeat others: a result is joined with itself"
    assert finding.primary.site == USED
    assert finding.confidence is Confidence.MEDIUM


def test_a_layer_that_is_left_out_is_the_same_failure_as_a_result_that_is_joined_with_itself():
    (finding,) = found(more=[JOINED] * 3)
    assert "repeat" not in finding.message


@pytest.mark.parametrize(
    "more",
    [
        [JOINED] * 2,
        [JOINED, JOINED, JOINED, InputRepeated(parameter=1, width=0, inputs=16, site=USED)],
    ],
    ids=["two passes", "another input in one pass"],
)
def test_a_layer_that_does_not_always_get_a_result_twice_is_not_found(more):
    assert not found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), more=more)


def test_a_layer_with_loaded_weights_that_gets_a_result_twice_is_not_found():
    met = [*MET, StateLoaded(model=1, parameters=(1, 2, 3, 4))]
    assert not found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), met=met, more=[JOINED] * 3)


def test_an_installed_model_that_repeats_a_result_is_not_found():
    met = [ModelMet(model=1, name="net", parameters=(1, 2, 3, 4), site=CALLED, installed=True), *MET]
    met = [event for event in met if not isinstance(event, ModelMet) or event.installed]
    assert not found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), met=met, more=[JOINED] * 3)


def test_an_output_that_no_loss_reads_beside_one_that_is_read_twice_is_found():
    unread = ColumnsUnread(parameter=1, unread=(3,), again=(2,), outputs=4, site=USED)
    (finding,) = found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), more=[unread])
    assert finding.message == "no loss reads output 3 of `net.body`, and output 2 is selected more than once"
    assert (finding.seen.count, finding.seen.total, finding.confidence) == (1, 4, Confidence.MEDIUM)


def test_an_output_of_an_installed_model_that_no_loss_reads_is_not_found():
    installed = ModelMet(model=1, name="net", parameters=(1, 2, 3, 4), site=CALLED, installed=True)
    met = [installed if isinstance(event, ModelMet) else event for event in MET]
    unread = ColumnsUnread(parameter=1, unread=(3,), again=(2,), outputs=4, site=USED)
    assert not found(moved=(1, 2, 3, 4), reached=(1, 2, 3, 4), met=met, more=[unread])
