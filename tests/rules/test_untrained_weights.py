from dataclasses import replace

import pytest

from truestep.events import (
    BackwardEnded,
    LayerRan,
    LossComputed,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    Site,
    StateLoaded,
)
from truestep.findings import Confidence
from truestep.rules.untrained_weights import UntrainedWeights
from truestep.testing import judge

CALL, FREEZE = Site("train.py", 32, 8), Site("train.py", 12, 4)
SHAPES = {1: (8, 4), 2: (8,), 3: (8, 8), 4: (8,), 11: (6, 4), 12: (6, 6), 13: (2, 6)}
MET = [ParameterMet(parameter=number, name=f"p{number}", shape=shape) for number, shape in SHAPES.items()]
TEACHER = ModelMet(model=1, name="teacher", parameters=(1, 2, 3, 4), site=CALL)
STUDENT = ModelMet(model=2, name="student", parameters=(11, 12, 13))
ENCODER = replace(TEACHER, name="encoder")
WHOLE = ModelMet(model=1, name="model", parameters=(1, 2, 3, 4, 11, 12, 13), freeze=FREEZE, site=CALL)
ADAM = OptimizerBuilt(optimizer=1, parameters=(11, 12, 13))
RAN = LayerRan(parameters=(1, 2, 3, 4))


def read(still=(), frozen=(), moved=(11, 12, 13)):
    return ParametersUnchanged(parameters=still, frozen=frozen, moved=moved, random=(1, 3), steps=10)


def steps(*more):
    calls = [ModelCalled(model=1, site=CALL, tracked=False, grad=False), ModelCalled(model=2)]
    return [*calls, BackwardEnded(), *more, OptimizerStepped(optimizer=1)] * 12


def test_an_untrained_teacher_is_found_where_it_is_called():
    losses = [LossComputed(kind=kind, site=CALL) for kind in ("kl_div", "cross_entropy")]
    events = [*MET, ADAM, TEACHER, STUDENT, *steps(read(still=(1, 2, 3, 4)))]
    assert judge(UntrainedWeights, events) == []  # it may make all targets
    (finding,) = judge(UntrainedWeights, [*events, *losses])
    assert finding.message == "`teacher` has weights that were neither trained nor loaded"
    assert (finding.primary.site, finding.confidence) == (CALL, Confidence.MEDIUM)


def test_a_frozen_part_is_found_where_it_is_frozen():
    (finding,) = judge(UntrainedWeights, [*MET, ADAM, WHOLE, RAN, *steps(read(frozen=(1, 2, 3, 4)))])
    assert (finding.primary.site, finding.seen.count) == (FREEZE, 2)


def test_another_network_was_trained():
    earlier = [OptimizerBuilt(optimizer=2, parameters=(21, 22, 23, 24))]
    earlier += [ParameterMet(parameter=n, name=f"p{n}", shape=SHAPES[n - 20]) for n in range(21, 25)]
    trained = [OptimizerStepped(optimizer=2)] * 12
    fixed, run = replace(TEACHER, name="net"), steps(read(still=(1, 2, 3, 4)))
    (finding,) = judge(UntrainedWeights, [*MET, *earlier, *trained, ADAM, fixed, STUDENT, *run])
    assert finding.primary.label == "another network with these shapes was trained"
    assert judge(UntrainedWeights, [*MET, *earlier, *trained, ADAM, fixed, STUDENT, *run, *trained]) == []
    assert judge(UntrainedWeights, [*MET, *earlier, ADAM, fixed, STUDENT, *run]) == []


@pytest.mark.parametrize(
    "events",
    [
        [ADAM, replace(TEACHER, name="target"), STUDENT, *steps(read(still=(1, 2, 3, 4)))],
        [ADAM, replace(TEACHER, name="random_encoder"), STUDENT, *steps(read(still=(1, 2, 3, 4)))],
        [
            ADAM,
            replace(TEACHER, name="encoder"),
            StateLoaded(model=1, parameters=(1, 2, 3, 4)),
            STUDENT,
            *steps(read(still=(1, 2, 3, 4))),
        ],
        [ADAM, ENCODER, STUDENT, *steps(read(still=(2, 4), moved=(1, 3, 11, 12, 13)))],
        [ADAM, WHOLE, RAN, *steps(read(frozen=(1, 2, 3, 4), moved=(13,)))],
        [ADAM, WHOLE, *steps(read(frozen=(1, 2, 3, 4)))],
        [ADAM, WHOLE, RAN, *steps(read(still=(1, 2, 3, 4)))],
    ],
    ids=["no role", "random by its name", "loaded", "an average", "features with a readout", "not run", "not frozen"],
)
def test_networks_that_may_be_random_are_quiet(events):
    assert judge(UntrainedWeights, [*MET, *events]) == []


def test_the_target_of_a_predictor_is_quiet():
    twin = [ParameterMet(parameter=n, name=f"p{n}", shape=SHAPES[n - 20]) for n in range(21, 25)]
    both = replace(WHOLE, parameters=(1, 2, 3, 4, 21, 22, 23, 24))
    adam = OptimizerBuilt(optimizer=1, parameters=(21, 22, 23, 24))
    run = steps(read(frozen=(1, 2, 3, 4), moved=(21, 22, 23, 24)))
    assert judge(UntrainedWeights, [*MET, *twin, adam, both, RAN, *run]) == []


def twin_models(count):
    """Return networks with the shapes of the teacher, each with its optimizer, trained one after another."""
    events = []
    for number in range(count):
        first = 20 + 10 * number
        events += [ParameterMet(parameter=first + n, name=f"p{n}", shape=SHAPES[n]) for n in (1, 2, 3, 4)]
        events += [
            OptimizerBuilt(optimizer=2 + number, parameters=tuple(range(first + 1, first + 5))),
            ModelMet(model=3 + number, name="client", parameters=tuple(range(first + 1, first + 5))),
            ParametersUnchanged(parameters=(), moved=tuple(range(first + 1, first + 5)), steps=10),
            *[ModelCalled(model=3 + number), BackwardEnded(), OptimizerStepped(optimizer=2 + number)] * 12,
            evaluation(1),
        ]
    return events


def evaluation(model):
    return ModelCalled(model=model, site=CALL, tracked=False, grad=False, use="compared", only_read=True)


def test_a_server_that_is_evaluated_and_never_updated_is_found():
    server = replace(TEACHER, name="server")
    begun = [*MET, server, evaluation(1), ParametersUnchanged(parameters=(1, 2, 3, 4), random=(1, 3), steps=10)]
    (finding,) = judge(UntrainedWeights, [*begun, *twin_models(4)])
    assert finding.message == "`server` has weights that were neither trained nor loaded"
    assert judge(UntrainedWeights, [*begun, *twin_models(4), evaluation(3)]) == []  # what is trained is evaluated too
    baseline = [replace(event, name="baseline") if event is server else event for event in begun]
    assert judge(UntrainedWeights, [*baseline, *twin_models(4)]) == []


def test_an_average_that_is_first_evaluated_after_training_is_found():
    average = replace(TEACHER, name="swa_model", fresh=(1, 3))
    (finding,) = judge(UntrainedWeights, [*MET, *twin_models(2)[:-1], average, evaluation(1)])
    assert finding.primary.label == "another network with these shapes was trained"
    assert judge(UntrainedWeights, [*MET, *twin_models(2)[:-1], replace(average, fresh=()), evaluation(1)]) == []


def test_a_frozen_part_that_is_called_on_its_own_is_found():
    held = replace(ADAM, parameters=(1, 2, 3, 4, 11, 12, 13))
    events = [*MET, held, replace(TEACHER, name="coupling"), STUDENT, RAN, *steps(read(frozen=(1, 2, 3, 4)))]
    (finding,) = judge(UntrainedWeights, events)
    assert finding.primary.label == "frozen, beside weights that are trained"
    assert judge(UntrainedWeights, [replace(ADAM) if event is held else event for event in events]) == []
