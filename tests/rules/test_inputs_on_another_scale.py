"""Inputs of an evaluation that are far from those of training are reported; a call within the range clears it."""

from dataclasses import replace

from truestep.events import (
    BackwardEnded,
    FirstNormRead,
    InputsRead,
    LevelsRead,
    LoaderMet,
    LoaderStarted,
    ModelCalled,
    ModelMet,
    OrderRead,
    RunEnded,
    ScalingRead,
    Site,
)
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.inputs_on_another_scale import InputsOnAnotherScale
from truestep.testing import judge

MET = ModelMet(model=1, name="model", parameters=(1, 2))
TRAIN, EVAL = Site("train.py", 7), Site("train.py", 20)


def read(
    mean: float, spread: float, *, training: bool = False, rows: int = 32, floating: bool = True, argument: str = ""
) -> InputsRead:
    return InputsRead(
        model=1,
        training=training,
        mean=mean,
        spread=spread,
        least=mean - spread,
        most=mean + spread,
        dtype="float32",
        floating=floating,
        shape=(rows, 4),
        argument=argument,
        site=TRAIN if training else EVAL,
    )


MEASURED = ModelCalled(model=1, site=EVAL, training=False, grad=False, tracked=False, use="compared", only_read=True)
TRAINED = [MET, MEASURED, *[read(mean, 1.0, training=True) for mean in (0.0, 0.1, -0.1)]]


def test_inputs_that_were_not_normalised_are_reported():
    for far in (read(10.0, 1.0), read(0.0, 8.0)):
        (finding,) = judge(InputsOnAnotherScale, [*TRAINED, far, far])
        assert finding.primary.site == EVAL
        assert [mark.site for mark in finding.related] == [TRAIN]
        assert finding.seen.count == 2


def test_a_training_on_zeros_is_reported():
    trained = [MET, MEASURED, *[read(0.0, 0.0, training=True)] * 3]
    (finding,) = judge(InputsOnAnotherScale, [*trained, read(0.5, 0.3)])
    assert finding.primary.site == EVAL
    assert judge(InputsOnAnotherScale, [*trained, read(0.0, 0.0)]) == []


def test_a_call_within_the_range_is_enough_to_be_quiet():
    assert judge(InputsOnAnotherScale, [*TRAINED, read(10.0, 1.0), read(0.5, 1.0)]) == []


def test_calls_of_a_sampler_are_quiet():
    assert judge(InputsOnAnotherScale, [MET, *TRAINED[2:], read(10.0, 1.0)]) == []


def test_few_values_and_small_distances_are_quiet():
    assert judge(InputsOnAnotherScale, [*TRAINED, read(10.0, 1.0, rows=4)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED, read(3.0, 3.0)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED[:4], read(10.0, 1.0)]) == []


def test_constant_inputs_and_whole_numbers_are_quiet():
    constant = [MET, MEASURED, *[read(1.0, 0.0, training=True)] * 3]
    whole = [MET, MEASURED, *[read(1.0, 1.0, training=True, floating=False)] * 3]
    assert judge(InputsOnAnotherScale, [*constant, read(10.0, 1.0)]) == []
    assert judge(InputsOnAnotherScale, [*whole, read(100.0, 1.0, floating=False)]) == []


def test_a_run_without_an_evaluation_is_not_observed():
    rule, run = InputsOnAnotherScale(), Progress()
    for event in TRAINED:
        run.note(event)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED


def beside(mean: float, spread: float, *, training: bool = False) -> InputsRead:
    return read(mean, spread, training=training, argument="numbers")


def test_a_later_argument_that_was_not_normalised_is_reported():
    trained = [MET, MEASURED, *[read(5.0, 3.0, training=True, floating=False), beside(0.0, 1.0, training=True)] * 3]
    categories = read(5.0, 3.0, floating=False)
    (finding,) = judge(InputsOnAnotherScale, [*trained, categories, beside(70.0, 30.0)])
    assert finding.primary.site == EVAL
    assert "`numbers` of 70 +- 30" in finding.primary.label
    assert judge(InputsOnAnotherScale, [*trained, categories, beside(0.5, 1.2)]) == []


def test_a_later_argument_that_begins_at_zero_in_training_is_quiet():
    trained = [MET, MEASURED, *[read(5.0, 3.0, training=True, floating=False), beside(0.0, 0.0, training=True)] * 3]
    assert judge(InputsOnAnotherScale, [*trained, beside(0.5, 0.3)]) == []


def of(name: str, one: InputsRead) -> InputsRead:
    return replace(one, given=name)


def test_one_of_several_evaluations_is_reported_by_its_name():
    clean, far = of("x_val", read(0.5, 1.0)), read(10.0, 5.0)
    (finding,) = judge(InputsOnAnotherScale, [*TRAINED, clean, of("x_test", far), of("x_test", far)])
    assert (finding.primary.site, finding.seen.count) == (EVAL, 2)
    assert judge(InputsOnAnotherScale, [*TRAINED, clean, of("x_test_noisy", far)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED, clean, of("x", far)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED, of("x_test", read(0.5, 1.0)), of("x_test", far)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED, clean, of("x_test", read(10.0, 1.0))]) == []  # beyond the training


def test_values_as_measured_have_no_preparation_to_forget():
    trained = [MET, MEASURED, *[read(mean, 10.0, training=True) for mean in (100.0, 101.0, 99.0)]]
    assert (
        judge(InputsOnAnotherScale, [*trained, of("x_val", read(105.0, 10.0)), of("x_test", read(400.0, 90.0))]) == []
    )


def test_a_loader_names_the_evaluation_of_its_batches():
    loaders = [LoaderMet(loader=1, name="val_loader"), LoaderMet(loader=2, name="test_loader")]
    clean, far = replace(read(0.5, 1.0), loader=1, given="*"), replace(read(10.0, 5.0), loader=2)
    assert len(judge(InputsOnAnotherScale, [*loaders, *TRAINED, clean, of("*", far)])) == 1
    assert judge(InputsOnAnotherScale, [*loaders, *TRAINED, clean, of("noise", far)]) == []


def levels(
    distance: float,
    mean: float = 0.0,
    spread: float = 1.0,
    *,
    training: bool = False,
    offset: float = 0.5,
    part: str = "",
    site: Site | None = None,
) -> LevelsRead:
    return LevelsRead(
        model=1,
        training=training,
        part=part,
        distance=distance,
        offset=offset,
        mean=mean,
        spread=spread,
        site=site or (TRAIN if training else EVAL),
    )


ON_LEVELS = [*TRAINED, read(0.3, 0.4), *[levels(0.016, training=True)] * 3]
"""Of a training on normalised pixels, and an evaluation on inputs that are not far from them."""


def test_the_same_values_in_another_scale_are_reported():
    (finding,) = judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.004, 0.5, 0.25, offset=0.0)])
    assert finding.primary.site == EVAL
    assert "in steps of 0.004" in finding.primary.label
    assert "in steps of 0.016" in finding.related[0].label


def test_a_missing_subtraction_is_reported_and_brighter_pictures_are_not():
    assert len(judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.016, 2.0, offset=0.0)])) == 1
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.016, 2.0)]) == []


def test_a_clean_evaluation_at_another_line_is_enough_to_be_quiet():
    far, other = levels(0.004, 0.5, 0.25, offset=0.0), Site("train.py", 30)
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, far, levels(0.016, site=other)]) == []
    assert len(judge(InputsOnAnotherScale, [*ON_LEVELS, far, levels(0.0, site=other)])) == 1  # a dry run


TRAINED_ON = [
    LoaderMet(loader=1, name="loader", dataset=1),
    LoaderMet(loader=2, name="test_loader", dataset=2),
    LoaderMet(loader=3, name="contrast", dataset=3),
    LoaderMet(loader=4, name="same", dataset=1),
    LoaderStarted(loader=1),
    BackwardEnded(loader=1),
]


def test_an_evaluation_on_data_of_the_training_is_not_a_clean_one():
    far, clean = levels(0.004, 0.5, 0.25, offset=0.0), replace(levels(0.016, site=Site("train.py", 30)), given="*")
    for loader in (1, 4):
        again = [*TRAINED_ON, *ON_LEVELS, replace(clean, loader=loader)]
        assert len(judge(InputsOnAnotherScale, [*again, replace(far, given="*", loader=2)])) == 1
        assert len(judge(InputsOnAnotherScale, [*again, replace(far, given="x_test")])) == 1
        assert judge(InputsOnAnotherScale, [*again, replace(far, given="*", loader=3)]) == []
        assert judge(InputsOnAnotherScale, [*again, replace(clean, loader=2), replace(far, given="x_test")]) == []
    own = [*ON_LEVELS, replace(clean, given="x_train"), replace(far, given="x_test")]
    assert len(judge(InputsOnAnotherScale, own)) == 1


def test_an_evaluation_with_gradients_counts_if_its_results_are_only_measured():
    far = read(10.0, 5.0)
    tracked = replace(MEASURED, grad=True, tracked=True)
    for call, count in ((tracked, 1), (replace(tracked, only_read=False), 0), (replace(tracked, training=True), 0)):
        assert len(judge(InputsOnAnotherScale, [MET, call, *TRAINED[2:], far])) == count


def test_other_pictures_in_a_similar_scale_are_quiet():
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.03, 0.1, 1.1, offset=0.2)]) == []
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.004, 0.5, 0.1, offset=0.0)]) == []  # other contrast


def test_every_second_level_is_not_another_scale():
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.032, 0.6, 1.0, offset=0.25)]) == []
    between = [*TRAINED, read(0.3, 0.4), *[levels(0.016 * n, training=True) for n in (1, 2, 1)]]
    assert len(judge(InputsOnAnotherScale, [*between, levels(0.004, 0.5, 0.25, offset=0.0)])) == 1


def test_a_training_on_several_scales_or_without_levels_is_quiet():
    far = levels(0.004, 0.5, 0.25, offset=0.0)
    for more in (levels(0.01, training=True), levels(0.0, training=True), levels(0.016, training=True, offset=0.2)):
        assert judge(InputsOnAnotherScale, [*ON_LEVELS, more, far]) == []


def normed(distance: float = 0.1, ratio: float = 1.0) -> FirstNormRead:
    return FirstNormRead(model=1, layer="bn1", distance=distance, ratio=ratio, mean=40, spread=30, site=EVAL)


def test_inputs_far_from_the_statistics_of_a_loaded_model_are_reported():
    for far in (normed(20), normed(ratio=30), normed(ratio=0.03)):
        (finding,) = judge(InputsOnAnotherScale, [MET, MEASURED, far, far])
        assert finding.primary.label.startswith("`bn1` gets 40 +- 30")
        assert finding.seen.count == 2


def test_statistics_within_the_range_a_sampler_and_a_training_in_the_same_run_are_quiet():
    assert judge(InputsOnAnotherScale, [MET, MEASURED, normed(20), normed(4, 3.0)]) == []
    assert judge(InputsOnAnotherScale, [MET, MEASURED, normed(ratio=0.0)]) == []  # a constant picture
    assert judge(InputsOnAnotherScale, [MET, normed(20)]) == []
    assert judge(InputsOnAnotherScale, [*TRAINED, normed(20)]) == []


def test_points_that_were_chosen_are_quiet():
    points = [replace(one, even=True) if isinstance(one, LevelsRead) else one for one in ON_LEVELS]
    assert judge(InputsOnAnotherScale, [*points, levels(0.048, 0.0, 3.0)]) == []
    assert len(judge(InputsOnAnotherScale, [*ON_LEVELS, levels(0.048, 0.0, 3.0)])) == 1


def test_a_frozen_part_of_another_training_is_not_evaluated():
    features = levels(0.004, 0.5, 0.25, offset=0.0, site=Site("train.py", 40))
    assert judge(InputsOnAnotherScale, [*ON_LEVELS, features]) == []


ENDED = RunEnded(how="finished")
MADE = Site("train.py", 15)


def test_a_table_with_another_kind_of_scaling_is_reported_where_it_is_made():
    facts = {"model": 1, "table": "x_test", "rows": 90, "features": 6, "site": EVAL, "made": MADE}
    one = ScalingRead(**facts, kind="unlike", how="range")  # type: ignore[arg-type]
    (finding,) = judge(InputsOnAnotherScale, [MET, MEASURED, one, ENDED])
    assert finding.primary.site == MADE
    assert [mark.site for mark in finding.related] == [EVAL]
    assert "about the range 0 to 1; in training a mean of 0" in finding.primary.label
    assert judge(InputsOnAnotherScale, [MET, one, ENDED]) == []  # nothing is measured


def test_columns_in_another_order_are_reported_unless_another_evaluation_has_that_of_the_training():
    moved = OrderRead(model=1, table="x_test", rows=90, moved=4, columns=7, site=EVAL, made=MADE)
    (finding,) = judge(InputsOnAnotherScale, [MET, MEASURED, moved, ENDED])
    assert finding.primary.site == MADE
    assert finding.message == "`x_test` has its columns in another order than the training data"
    assert finding.primary.label == "4 of 7 columns are in the places of others"
    assert judge(InputsOnAnotherScale, [MET, MEASURED, replace(moved, moved=0), moved, ENDED]) == []
