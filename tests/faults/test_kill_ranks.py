"""Trainings of two ranks of which one or all are killed at random moments end as uninterrupted ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAINER = Path(__file__).parent / "programs" / "ranks_trainer.py"
MANY = int(os.environ.get("TRUESTEP_RANK_KILLS", "100"))
"""Kills of each strategy in `make faults`."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked")


def killed(folder, kills, strategy, seed=5):
    command = [sys.executable, "-W", "ignore", str(TRAINER), str(folder), str(kills), str(seed), strategy]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRUESTEP_WATCH": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300 + 60 * kills
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_ranks_that_are_killed_many_times_train_as_uninterrupted_ones(strategy, tmp_path):
    seen = killed(tmp_path, MANY, strategy)
    assert seen["kills"] >= MANY
    assert seen["resumed"] >= MANY // 3, "most kills hit before a checkpoint: the test says little"
    assert seen["named"] >= seen["of one rank"] // 2, "the other rank names the one that was killed"


@pytest.mark.program
def test_ranks_that_are_killed_a_few_times_train_as_uninterrupted_ones(tmp_path):
    assert killed(tmp_path, 3, "ddp")["kills"] >= 3
