"""Tables of an evaluation with their own statistics are reported; joint ones unless another evaluation is clean."""

from truestep.events import LevelsRead, LoaderMet, OptimizerStepped, RunEnded, ScalingRead, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.scaled_with_evaluation_data import ScaledWithEvaluationData
from truestep.testing import judge

MADE, EVAL, LOADER = Site("train.py", 7), Site("train.py", 20), Site("train.py", 9)


def read(kind: str, table: str = "x_test", *, rows: int = 90, made: Site | None = MADE, **more) -> ScalingRead:
    how = "standard" if kind else ""
    return ScalingRead(
        **({"features": 8, "how": how} | more),
        model=1,
        table=table,
        rows=rows,
        trained="x_train",
        kind=kind,
        site=EVAL,
        made=made,
    )


def test_a_table_with_statistics_of_its_own_is_an_error():
    (finding,) = judge(ScaledWithEvaluationData, [read("own"), read("", "x_val")])
    assert finding.primary.site == MADE
    assert [mark.site for mark in finding.related] == [EVAL]
    assert finding.severity is Severity.ERROR


def test_rows_scaled_before_the_split_are_reported_once():
    (finding,) = judge(ScaledWithEvaluationData, [read("joint", whole="x"), read("joint", "x_val", whole="x")])
    assert finding.severity is Severity.WARNING
    assert "`x`" in finding.primary.label
    assert finding.seen.count == 2


def test_another_evaluation_with_statistics_of_the_training_is_enough():
    assert judge(ScaledWithEvaluationData, [read("joint", "x_val"), read("", "x_test")]) == []
    assert len(judge(ScaledWithEvaluationData, [read("joint", "x_val"), read("", "probe", rows=8)])) == 1


def test_another_evaluation_may_not_have_been_read():
    ended = RunEnded(how="finished", given_up="close reading given up at step 20")
    assert judge(ScaledWithEvaluationData, [read("joint", "x_val"), ended]) == []
    assert len(judge(ScaledWithEvaluationData, [read("own"), ended])) == 1


def test_channels_of_pictures_are_a_suspicion_unless_the_evaluation_has_its_own():
    (joint,) = judge(ScaledWithEvaluationData, [read("joint", features=3)])
    (own,) = judge(ScaledWithEvaluationData, [read("own", features=3)])
    assert (joint.confidence, own.confidence) == (Confidence.LOW, Confidence.MEDIUM)


def test_a_series_with_other_statistics_in_its_training_part_is_no_mere_suspicion():
    confidences = [
        judge(ScaledWithEvaluationData, [read("joint", features=1, series=True, shift=shift)])[0].confidence
        for shift in (0.05, 0.4)
    ]
    assert confidences == [Confidence.LOW, Confidence.MEDIUM]


def test_a_later_table_completes_the_rows_of_both():
    assert len(judge(ScaledWithEvaluationData, [read("", "x_val"), read("joint", "x_val"), read("joint")])) == 1


def test_windows_of_a_series_do_not_speak_for_it():
    series = read("joint", "dataset.series", rows=400, series=True)
    assert len(judge(ScaledWithEvaluationData, [read("", "dataset.x", rows=370), series])) == 1
    other = ScalingRead(model=1, table="x_test", rows=90, site=Site("train.py", 44))
    assert judge(ScaledWithEvaluationData, [other, series]) == []


def test_a_series_with_a_multiple_of_its_deviation_has_a_mean_of_zero():
    (finding,) = judge(ScaledWithEvaluationData, [read("own", how="centred", features=1, series=True)])
    assert "a mean of 0, as in training" in finding.primary.label


def test_tables_of_a_data_set_are_shown_by_their_loader():
    met = LoaderMet(loader=3, name="test_loader", dataset=1, batches=5, site=LOADER)
    (finding,) = judge(ScaledWithEvaluationData, [met, read("own", "dataset.x", made=None, loader=3)])
    assert finding.primary.site == LOADER
    assert "`test_loader`" in finding.message


def test_statistics_of_the_training_are_clear():
    rule, run = ScaledWithEvaluationData(), Progress()
    run.note(read(""))
    run.how = "finished"
    rule.observe(read(""), run)
    assert rule.findings(run) == []
    assert judge(ScaledWithEvaluationData, [read("")]) == []
    assert rule.verdict(run).outcome is not Outcome.FOUND


def levels(distance: float, own: str = "", *, training: bool = False, site: Site = EVAL) -> LevelsRead:
    return LevelsRead(
        model=1, training=training, distance=distance, spread=1.0, own=own, site=MADE if training else site
    )


TRAINED = [levels(0.02, training=True)] * 3


def test_samples_and_batches_with_statistics_of_their_own_are_reported():
    (samples,) = judge(ScaledWithEvaluationData, [*TRAINED, levels(0.0, "sample")])
    (batches,) = judge(ScaledWithEvaluationData, [*TRAINED, levels(0.018, "batch"), levels(0.023, "batch")])
    assert "each sample" in samples.message
    assert "each batch" in batches.message
    assert (batches.primary.site, batches.related[0].site, batches.severity) == (EVAL, MADE, Severity.WARNING)


def test_one_table_that_is_read_again_is_not_a_batch():
    assert judge(ScaledWithEvaluationData, [*TRAINED, *[levels(0.018, "batch")] * 3]) == []


def test_a_training_that_does_the_same_or_is_on_no_levels_is_quiet():
    same, noisy = [levels(0.0, "sample", training=True)] * 3, [levels(0.0, training=True)] * 3
    for trained in (same, noisy, TRAINED[:2], [*TRAINED, *same]):
        assert judge(ScaledWithEvaluationData, [*trained, levels(0.0, "sample")]) == []


def test_another_evaluation_in_the_scale_of_the_training_is_quiet():
    other = levels(0.02, site=Site("train.py", 40))
    assert judge(ScaledWithEvaluationData, [*TRAINED, levels(0.0, "sample"), other]) == []
    mixed = [levels(0.0, "sample"), levels(0.0)]
    assert judge(ScaledWithEvaluationData, [*TRAINED, *mixed]) == []


def fitted(site: Site = EVAL, **more) -> ScalingRead:
    facts = {"model": 1, "table": "x", "rows": 90, "kind": "joint", "how": "robust", "features": 4, "whole": "x"}
    return ScalingRead(**facts | more, fitted=True, site=site, made=MADE)


STEPPED = [OptimizerStepped(optimizer=1)] * 20


def test_statistics_of_a_table_with_rows_of_the_evaluation_are_reported_at_their_line():
    (finding,) = judge(ScaledWithEvaluationData, [*STEPPED, read("", "x_val"), fitted(), fitted(Site("train.py", 40))])
    assert finding.message.startswith("the inputs are scaled with medians and quartiles of all of `x`")
    assert (finding.primary.site, finding.related[0].site) == (MADE, EVAL)


def test_they_are_not_reported_again_beside_another_finding():
    (finding,) = judge(ScaledWithEvaluationData, [*STEPPED, read("joint", whole="x"), fitted()])
    assert "both" in finding.message
