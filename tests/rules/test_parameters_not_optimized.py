from dataclasses import replace

from truestep.events import (
    LeavesGrouped,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersAdded,
    ParametersUnchanged,
    Site,
    StateLoaded,
    TapeRead,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.parameters_not_optimized import ParametersNotOptimized
from truestep.testing import judge

BUILT = Site("train.py", 12, 4)
ALL = (1, 2, 3, 4, 5, 6)
NAMES = ("body.0.weight", "body.0.bias", "body.2.weight", "body.2.bias", "head.weight", "head.bias")
DEPTHS = (9, 8, 6, 5, 3, 2)
MODEL = ModelMet(model=1, name="net", parameters=ALL, site=Site("train.py", 20, 4))
MET = [*(ParameterMet(parameter=n, name=name, model=1) for n, name in zip(ALL, NAMES, strict=True)), MODEL]
READ = TapeRead(reached=ALL, forwarded=ALL, depths=DEPTHS)
STEP = OptimizerStepped(optimizer=1)


def run(held, unchanged, steps=10, met=MET, read=READ, more=()):
    built = OptimizerBuilt(optimizer=1, name="opt", parameters=held, site=BUILT)
    trained = [event for _ in range(steps) for event in (read, STEP)]
    return [*met, built, *trained, ParametersUnchanged(parameters=unchanged, steps=steps), *more]


def test_a_head_left_out_is_found_where_the_optimizer_is_built():
    (finding,) = judge(ParametersNotOptimized, run((1, 2, 3, 4), (5, 6)))
    assert finding.primary.site == BUILT
    assert finding.confidence is Confidence.HIGH
    assert "head.weight, head.bias" in finding.primary.label
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (2, 6, 0)
    assert "opt" in finding.help


def test_biases_left_out_by_a_filter_are_found():
    shapes = {n: (8, 8) if name.endswith("weight") else (8,) for n, name in zip(ALL, NAMES, strict=True)}
    met = [ParameterMet(parameter=n, name=NAMES[n - 1], shape=shapes[n], model=1) for n in ALL]
    (finding,) = judge(ParametersNotOptimized, run((1, 3, 5), (2, 4, 6), met=[*met, MODEL]))
    assert finding.confidence is Confidence.HIGH


def test_training_a_head_only_has_low_confidence():
    (finding,) = judge(ParametersNotOptimized, run((5, 6), (1, 2, 3, 4)))
    assert finding.confidence is Confidence.LOW
    (finding,) = judge(ParametersNotOptimized, run((3, 4, 5, 6), (1, 2)))
    assert finding.confidence is Confidence.LOW


def test_tuning_a_prompt_has_low_confidence():
    (finding,) = judge(ParametersNotOptimized, run((1,), (2, 3, 4, 5, 6)))
    assert finding.confidence is Confidence.LOW


def test_adapters_inside_unfrozen_layers_have_low_confidence():
    names = ("a.base", "a.lora_a", "a.lora_b", "b.base", "b.lora_a", "b.lora_b")
    met = [
        ParameterMet(parameter=n, name=name, shape=(64, 64) if "base" in name else (64, 4), model=1)
        for n, name in zip(ALL, names, strict=True)
    ]
    (finding,) = judge(ParametersNotOptimized, run((2, 3, 5, 6), (1, 4), met=[*met, MODEL]))
    assert finding.confidence is Confidence.LOW


def test_values_moved_by_hand_are_quiet():
    assert judge(ParametersNotOptimized, run((1, 2, 3, 4), ())) == []


def test_gradual_unfreezing_is_taken_back():
    joined = [ParametersAdded(optimizer=1, parameters=(5, 6)), STEP, ParametersUnchanged(parameters=(), steps=11)]
    assert judge(ParametersNotOptimized, run((1, 2, 3, 4), (5, 6), more=joined)) == []


def test_frozen_parameters_are_quiet():
    met = [ParameterMet(parameter=n, name=NAMES[n - 1], trainable=n < 5, model=1) for n in ALL]
    assert judge(ParametersNotOptimized, run((1, 2, 3, 4), (), met=[*met, MODEL])) == []


def test_a_model_of_which_nothing_is_optimized_is_quiet():
    assert judge(ParametersNotOptimized, run((9,), ALL)) == []


def test_parameters_that_the_loss_does_not_reach_are_quiet():
    read = TapeRead(reached=(1, 2, 3, 4), forwarded=ALL, depths=(9, 8, 6, 5))
    assert judge(ParametersNotOptimized, run((1, 2, 3, 4), (5, 6), read=read)) == []


def test_an_optimizer_of_replaced_parameters_is_left_to_its_own_rule():
    assert judge(ParametersNotOptimized, run((1, 2, 3, 4, 7, 8), (5, 6))) == []


def test_a_run_that_is_too_short_is_not_observed():
    verdict = ParametersNotOptimized().verdict(Progress(met={OptimizerBuilt, TapeRead}, step=9))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "fewer than 10 optimizer steps")


def test_values_that_were_not_looked_at_are_not_observed():
    rule, progress = ParametersNotOptimized(), Progress()
    for event in run((1, 2, 3, 4), ())[:-1]:
        progress.note(event)
        rule.observe(event, progress)
        progress.advance(event)
    assert rule.verdict(progress).reason == "no check of the values of parameters"


def test_few_random_weights_left_out_have_medium_confidence():
    met = [ParameterMet(parameter=n, name=NAMES[n - 1], shape=(8, 8) if n % 2 else (8,), model=1) for n in ALL]

    def found(random):
        looked = ParametersUnchanged(parameters=(1, 2), moved=(3, 4, 5, 6), random=random, steps=10)
        (finding,) = judge(ParametersNotOptimized, [*run((3, 4, 5, 6), (1, 2), met=[*met, MODEL]), looked])
        return finding.confidence

    assert found((1,)) is Confidence.MEDIUM
    assert found(()) is Confidence.LOW


def test_a_model_with_random_weights_in_no_optimizer_is_found_while_another_is_trained():
    other = ModelMet(model=2, name="maker", parameters=(9,), site=Site("train.py", 22, 4))
    shapes = [ParameterMet(parameter=n, name=NAMES[n - 1], shape=(8, 8) if n % 2 else (8,), model=1) for n in ALL]
    met = [*shapes, ParameterMet(parameter=9, name="maker.weight", model=2), MODEL, other]

    def found(random, met=met):
        more = [ParametersUnchanged(parameters=ALL, moved=(9,), random=random, steps=10)]
        return judge(ParametersNotOptimized, run((9,), ALL, met=met, more=more))

    (finding,) = found((1, 3, 5))
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label.startswith("`opt` does not hold body.0.weight")
    assert found((1, 3)) == []
    assert found((1, 3, 5), [*shapes, MODEL]) == []
    target = StateLoaded(site=BUILT, parameters=ALL)
    assert found((1, 3, 5), [*met, target]) == []


def test_square_weights_of_a_recurrent_cell_do_not_hide_a_random_decoder():
    names = ("embed.weight", "cell.bias_ih", "cell.weight_ih", "out.bias", "cell.weight_hh", "query.bias")
    other = ModelMet(model=2, name="encoder", parameters=(9,), site=Site("train.py", 22, 4))

    def found(random, square=(9, 9)):
        shapes = {1: (7, 3), 3: square, 5: (9, 3)}
        met = [ParameterMet(parameter=n, name=names[n - 1], shape=shapes.get(n, (9,)), model=1) for n in ALL]
        met += [ParameterMet(parameter=9, name="encoder.weight", model=2), MODEL, other]
        more = [ParametersUnchanged(parameters=ALL, moved=(9,), random=random, steps=10)]
        return judge(ParametersNotOptimized, run((9,), ALL, met=met, more=more))

    (finding,) = found((1, 5))
    assert finding.confidence is Confidence.MEDIUM
    assert found((1, 5), square=(9, 6)) == []
    assert found((1, 3)) == []  # a weight that is not square has other values: it was loaded
    assert found(()) == []


def test_parameters_that_were_unfrozen_and_never_joined_are_found():
    frozen = [ParameterMet(parameter=n, name=NAMES[n - 1], trainable=n > 4, model=1) for n in ALL]
    (finding,) = judge(ParametersNotOptimized, run((5, 6), (1, 2, 3, 4), met=[*frozen, MODEL]))
    assert finding.confidence is Confidence.MEDIUM
    alone = replace(MODEL, parameters=(1, 2, 3, 4))
    (finding,) = judge(ParametersNotOptimized, run((5, 6), (1, 2, 3, 4), met=[*frozen, alone]))
    assert finding.primary.label.startswith("`opt` does not hold body.0.weight")
    joined = ParametersAdded(optimizer=1, parameters=(1, 2, 3, 4))
    moved = ParametersUnchanged(parameters=(), moved=(1, 2, 3, 4), steps=20)
    assert judge(ParametersNotOptimized, run((5, 6), (1, 2, 3, 4), met=[*frozen, alone], more=(joined, moved))) == []


def of_a_dict(held, unchanged, steps=60, read=(1, 2, 3), moved=None, shapes=((8, 8), (8,), (8,))):
    names = ("P['w']", "P['b']", "P['v']")
    met = [ParameterMet(parameter=n, name="", shape=shape) for n, shape in zip((1, 2, 3), shapes, strict=True)]
    group = LeavesGrouped(parameters=(1, 2, 3), names=names, name="P")
    looked = ParametersUnchanged(parameters=unchanged, moved=held if moved is None else moved, steps=steps)
    return [*run(held, (), steps, met, TapeRead(reached=read), [group, looked])]


def test_a_tensor_of_a_dict_that_no_optimizer_holds_is_found():
    (finding,) = judge(ParametersNotOptimized, of_a_dict((1, 3), (2,)))
    assert finding.primary.site == BUILT
    assert finding.primary.label == "`opt` holds 2 tensors of `P`, not P['b']"
    assert finding.confidence is Confidence.MEDIUM


def test_most_tensors_of_a_dict_left_out_are_quiet():
    assert judge(ParametersNotOptimized, of_a_dict((3,), (1, 2))) == []


def test_a_large_table_of_a_dict_left_out_is_the_base_of_adapters():
    assert judge(ParametersNotOptimized, of_a_dict((2, 3), (1,))) == []


def test_tensors_of_a_dict_that_move_or_are_not_reached_are_quiet():
    assert judge(ParametersNotOptimized, of_a_dict((1, 3), (), moved=(1, 2, 3))) == []
    assert judge(ParametersNotOptimized, of_a_dict((1, 3), (2,), read=(1, 3))) == []
    assert judge(ParametersNotOptimized, of_a_dict((1, 3), (2,), moved=())) == []
