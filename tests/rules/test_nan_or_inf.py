from truestep.events import (
    BackwardEnded,
    GradientsRepaired,
    GradientsZeroed,
    LossNotFinite,
    OptimizerStepped,
    ParameterMet,
    ScalerStepped,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.nan_or_inf import NanOrInf
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), Site("train.py", 24, 8)
BACKWARD = BackwardEnded(site=LINE, observed=2, written=2)
BAD = LossNotFinite(site=LINE, value="nan", operations=("NegBackward0", "LogBackward0"))
WORSE = LossNotFinite(site=LINE, value="nan", parameters_finite=False, first_parameter="fc.weight")
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
FINE = [BACKWARD, STEPPED]


def test_training_on_a_nan_loss_is_found_at_the_backward():
    (finding,) = judge(NanOrInf, [*FINE, BAD, BACKWARD, STEPPED, WORSE, BACKWARD, STEPPED])
    assert finding.primary.site == LINE
    assert finding.related[0].site == STEP
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (2, 1)
    assert "LogBackward0" in finding.cost
    assert "logarithm" in finding.help


def test_the_first_time_has_medium_confidence():
    (finding,) = judge(NanOrInf, [BAD, BACKWARD, STEPPED, *FINE])
    assert finding.confidence is Confidence.MEDIUM


def test_parameters_that_were_not_finite_are_named():
    (finding,) = judge(NanOrInf, [WORSE, BACKWARD, STEPPED])
    assert finding.confidence is Confidence.HIGH
    assert "`fc.weight` was already not finite" in finding.cost


def test_what_follows_elsewhere_is_the_same_failure():
    other = LossNotFinite(site=Site("train.py", 40), parameters_finite=False)
    assert len(judge(NanOrInf, [BAD, BACKWARD, STEPPED, other, BACKWARD, STEPPED])) == 1


def test_a_batch_that_the_script_skips_is_quiet():
    assert judge(NanOrInf, [BAD, BACKWARD, GradientsZeroed(optimizer=1, fresh=2), *FINE]) == []


def test_gradients_dropped_by_hand_are_quiet():
    assert judge(NanOrInf, [BAD, BACKWARD, *FINE]) == []


def test_a_step_that_a_scaler_skips_is_quiet():
    more = BackwardEnded(site=LINE, observed=2, written=2, onto_fresh=2)
    assert judge(NanOrInf, [BAD, BACKWARD, ScalerStepped(scaler=1, skipped=True), more, STEPPED]) == []


def test_a_step_that_a_scaler_let_pass_is_quiet():
    passed = OptimizerStepped(optimizer=1, observed=2, fresh=2, scaler=True)
    assert judge(NanOrInf, [BAD, BACKWARD, passed]) == []


def test_a_bad_loss_inside_a_window_is_found_when_the_window_closes():
    more = BackwardEnded(site=LINE, observed=2, written=2, onto_fresh=2)
    assert len(judge(NanOrInf, [BACKWARD, BAD, more, more, STEPPED])) == 1


def test_a_run_without_a_backward_pass_is_not_observed():
    verdict = NanOrInf().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no backward pass")


def test_gradients_that_were_repaired_are_quiet():
    assert judge(NanOrInf, [BAD, BACKWARD, GradientsRepaired(optimizer=1), STEPPED] * 3) == []


def test_a_batch_that_holds_nan_is_marked_where_it_is_read():
    read = Site("train.py", 18, 8)
    bad = LossNotFinite(
        site=LINE, operations=("PowBackward0",), variable="x", variable_holds="nan in 1 of 32 rows", variable_site=read
    )
    (finding,) = judge(NanOrInf, [bad, BACKWARD, STEPPED])
    assert finding.related[0].site == read
    assert finding.related[0].label == "`x` is the first variable that is not finite: nan in 1 of 32 rows"
    assert "PowBackward0" not in finding.cost
    assert "check the data" in finding.help


def test_an_output_that_is_not_finite_is_marked_with_what_was_finite_before_it():
    bad = LossNotFinite(
        site=LINE,
        before=0.31,
        variable="out",
        variable_holds="inf in 2 of 8 rows",
        variable_tracked=True,
        variable_site=Site("train.py", 20, 8),
        variables_finite=("x", "y"),
    )
    (finding,) = judge(NanOrInf, [bad, BACKWARD, STEPPED])
    assert finding.related[0].label.endswith("; `x`, `y` before it are")
    assert "the loss read before was 0.31" in finding.cost


def test_outputs_of_parameters_that_were_not_finite_are_not_marked():
    bad = LossNotFinite(
        site=LINE,
        parameters_finite=False,
        first_parameter="enc.weight",
        bad_parameters=4,
        nearest="enc.2.bias",
        finite_nearer=3,
        moment="exp_avg",
        moment_finite=False,
        operations=("PowBackward0", "SqrtBackward0"),
        variable="out",
        variable_tracked=True,
        variable_site=Site("train.py", 20, 8),
    )
    (finding,) = judge(NanOrInf, [bad, BACKWARD, STEPPED])
    assert [mark.site for mark in finding.related] == [STEP]
    assert (
        "the first of 4; the nearest such one to the loss is `enc.2.bias`, the 3 nearer to it are finite"
        in finding.cost
    )
    assert "`exp_avg` in the optimizer is not finite either: an earlier gradient was not" in finding.cost
    assert "root" in finding.help


def test_a_loss_that_grew_without_bound_blames_no_operation():
    bad = LossNotFinite(site=LINE, value="inf", before=1e33, operations=("PowBackward0",))
    (finding,) = judge(NanOrInf, [bad, BACKWARD, STEPPED])
    assert "lower the lr" in finding.help


def test_half_precision_weights_with_finite_moments_lack_an_eps():
    met = ParameterMet(parameter=1, name="fc.weight", dtype="float16")
    bad = LossNotFinite(
        site=LINE, parameters_finite=False, first_parameter="fc.weight", moment="exp_avg", moment_finite=True
    )
    (finding,) = judge(NanOrInf, [met, bad, BACKWARD, STEPPED])
    assert "`eps`" in finding.help
