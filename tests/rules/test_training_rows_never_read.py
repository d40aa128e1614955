import pytest

from truestep.events import OptimizerStepped, RowsEvaluated, RowsRead, Site
from truestep.rules.training_rows_never_read import TrainingRowsNeverRead
from truestep.testing import judge

CALL = Site("train.py", 12)
STEP = OptimizerStepped(optimizer=1)
START = {"least": 0, "most": 63}


def read(**facts):
    defaults = {"table": "x", "rows": 1000, "read": 64, **START, "site": CALL}
    return RowsRead(model=1, **{**defaults, **facts})


def found(*events, ended="finished"):
    return judge(TrainingRowsNeverRead, events, ended=ended)


def steps(count=8, **facts):
    return [event for _ in range(count) for event in (read(**facts), STEP)]


def test_the_rows_that_are_read_are_named():
    (finding,) = found(*steps())
    assert finding.primary.site == CALL
    assert finding.message == "the training reads only rows 0 to 63 of the 1,000 rows of `x`"
    assert finding.cost == "936 rows are never read"


def test_rows_that_are_read_again_are_counted():
    (finding,) = found(read(most=990), STEP, *steps(4, most=990, again=True))
    assert finding.message == "every step reads the same 64 of the 1,000 rows of `x` again"


@pytest.mark.parametrize(
    "facts",
    [
        {"most": 950},
        {"least": 10, "most": 20},
        {"in_order": True},
        {"changing": True},
        {"read": 1, "most": 700},
        {"rows": 70},
    ],
    ids=["nearly-all", "few-steps-of-each-part", "in-order", "a-buffer-that-is-filled", "few-draws", "nearly-whole"],
)
def test_other_reads_are_quiet(facts):
    before = [read(least=0, most=63), STEP] if facts == {"least": 10, "most": 20} else []
    assert found(*before, *steps(**facts)) == []


def test_reads_that_end_early_are_quiet():
    assert found(*steps(), *[STEP] * 30) == []


def test_a_part_that_an_evaluation_reads_is_quiet():
    evaluated = RowsEvaluated(model=1, table="x", trained="x", samples=200, inside=200, hits=3, rows=1000, seen=64)
    assert found(*steps(), evaluated) == []


def test_rows_of_one_step_that_differ_from_the_next_are_quiet():
    again = steps(4, most=990, again=True)
    assert found(read(most=990), STEP, *again, *steps(1, most=990)) == []


def test_a_run_that_did_not_finish_is_quiet():
    assert found(*steps(), ended="interrupted") == []
