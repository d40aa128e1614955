from truestep.events import AverageMeasured, ModelMet, OptimizerStepped, Site
from truestep.findings import Confidence
from truestep.rules.average_with_wrong_shares import AverageWithWrongShares
from truestep.testing import judge

LOOP, CALL = Site("train.py", 24, 8), Site("train.py", 30, 4)
MET = [
    ModelMet(model=1, name="net", parameters=(1, 2)),
    ModelMet(model=2, name="ema", parameters=(3, 4), site=CALL),
]


def run(*shares):
    """Return the findings for updates with these shares of the trained model, and sums of both shares."""
    measured = [AverageMeasured(model=2, source=1, take=take, total=total, site=LOOP) for take, total in shares]
    return judge(
        AverageWithWrongShares, [*MET, *[event for one in measured for event in (one, OptimizerStepped(optimizer=1))]]
    )


def test_shares_that_do_not_sum_to_one_are_found_at_the_loop():
    (finding,) = run((0.98, 1.96), (0.98, 1.96))
    assert (finding.primary.site, finding.confidence) == (LOOP, Confidence.HIGH)
    assert finding.message == "the shares of the average `ema` sum to 1.96"
    assert finding.primary.label == "takes 0.98 of `net` and 0.98 of `ema`"
    assert run((0.0, 0.9996), (0.0, 0.9996))[0].seen.count == 2


def test_exchanged_shares_are_found():
    (finding,) = run((0.99, 1.0), (0.99, 1.0))
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "each update replaces nearly all of the average `ema`"


def test_a_decay_that_warms_up_is_exchanged_if_the_share_of_the_model_grows():
    (finding,) = run((0.1, 1.0), (0.18, 1.0), (0.85, 1.0), (0.91, 1.0), (0.96, 1.0))
    assert finding.primary.label == "takes 0.96 of `net`, and keeps 0.04 of `ema`"
    assert run((0.9, 1.0), (0.82, 1.0), (0.1, 1.0), (0.09, 1.0), (0.04, 1.0)) == []
    assert run((0.1, 1.0), (0.95, 1.0), (0.2, 1.0), (0.96, 1.0)) == []


def test_healthy_averages_are_quiet():
    for shares in [
        [(0.01, 1.0)] * 3,
        [(1.0, 1.0)] * 3,
        [(0.5, 1.0), (0.333, 1.0), (0.25, 1.0)],
        [(0.99, 1.0)],
        [(0.98, 1.96)],
        [(0.95, 1.0), (0.91, 1.0), (0.5, 1.0)],
        [(0.01, 1.00005)] * 3,
    ]:
        assert run(*shares) == []
