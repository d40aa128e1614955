"""A training that is killed again and again, at any instant, ends as an uninterrupted one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TRAINER = Path(__file__).parent / "programs" / "trainer.py"

VARIANTS = {
    "plain": [],
    "accumulate": ["--accumulate", "4", "--save-every", "1"],
    "fp16": ["--precision", "fp16", "--accumulate", "2", "--save-every", "2"],
    "asynchronous": ["--asynchronous", "--save-every", "1"],
    "workers": ["--workers", "2"],
    "tape": ["--tape"],
    "tape-workers": ["--tape", "--workers", "2"],
    "evaluations": ["--evaluate-every", "5", "--save-every", "2"],
}

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers of the killed are found by prctl")


def killed(folder, kills, options):
    command = [sys.executable, "-W", "ignore", str(TRAINER), str(folder), str(kills), "5", "--pause", "0.003", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_training_that_is_killed_many_times_is_the_uninterrupted_one(variant, tmp_path):
    seen = killed(tmp_path, 28, VARIANTS[variant])
    assert seen["kills"] >= 28
    assert seen["resumed"] >= 10, "most kills hit before a checkpoint: the test says little"


@pytest.mark.program
def test_a_training_that_is_killed_a_few_times_is_the_uninterrupted_one(tmp_path):
    assert killed(tmp_path, 3, ["--accumulate", "2", "--save-every", "1"])["kills"] >= 3
