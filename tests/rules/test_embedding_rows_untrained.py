"""Rows of embeddings that an evaluation reads and no step has trained."""

import pytest

from truestep.events import CheckpointLoaded, EmbeddingEvaluated, OptimizerStepped, RunEnded, Site
from truestep.findings import Confidence
from truestep.rules.embedding_rows_untrained import EmbeddingRowsUntrained
from truestep.testing import judge

READ = Site("model.py", 9, 8)
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)
END = RunEnded(how="finished")


def evaluated(untrained=60, name="words", reads=100, different=20, fresh=0.0, still=0.0):
    return EmbeddingEvaluated(
        model=1,
        name=name,
        rows=300,
        reads=reads,
        untrained=untrained,
        different=different,
        fresh=fresh,
        still=still,
        site=READ,
    )


def test_many_untrained_rows_are_found():
    (finding,) = judge(EmbeddingRowsUntrained, [STEP, evaluated(), evaluated(), END])
    assert finding.primary.site == READ
    assert "120 of 200 ids of an evaluation have rows of `words` that were never trained" in finding.message


def test_positions_beyond_those_of_the_training_have_low_confidence():
    (finding,) = judge(EmbeddingRowsUntrained, [STEP, evaluated(name="pos_emb"), END])
    assert finding.confidence is Confidence.LOW


@pytest.mark.parametrize(
    "events",
    [
        [evaluated(untrained=15), END],
        [evaluated(untrained=25, reads=30), END],
        [evaluated(different=2), END],
        [evaluated(fresh=0.3), END],
        [evaluated(still=1.0), END],
        [evaluated(), STEP, evaluated(untrained=0), END],
        [CheckpointLoaded(), evaluated(), END],
        [evaluated(), RunEnded(how="crashed")],
    ],
    ids=[
        "rare words",
        "few ids",
        "one row of unknown words",
        "the first pass over the data",
        "frozen rows",
        "trained by the latest evaluation",
        "loaded rows",
        "crashed",
    ],
)
def test_healthy_evaluations_are_quiet(events):
    assert not judge(EmbeddingRowsUntrained, [STEP, *events])
