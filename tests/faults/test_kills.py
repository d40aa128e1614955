"""kill -9 at any moment of a save loses nothing that was finished, and leaves nothing half there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SAVER = Path(__file__).parent / "programs" / "saver.py"


def killed(folder, kills, mode):
    command = [sys.executable, str(SAVER), str(folder), str(kills), "7", mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_no_finished_checkpoint_is_lost_in_many_kills(tmp_path, mode):
    seen = killed(tmp_path / "checkpoints", 60, mode)
    assert seen["kills"] == 60
    assert seen.get("tmp left behind", 0) >= 5, "the kills hit no save: the test says nothing"


def test_no_finished_checkpoint_is_lost_in_a_few_kills(tmp_path):
    assert killed(tmp_path / "checkpoints", 5, "synchronous")["kills"] == 5
