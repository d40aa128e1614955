"""`make mutants` can plant the mistake of every operator."""

import subprocess
import sys
from pathlib import Path

import pytest

MUTANTS = Path(__file__).parents[2] / "bench" / "mutants"


@pytest.mark.program
def test_every_operator_has_a_place_in_the_half_that_is_read():
    done = subprocess.run(
        [sys.executable, MUTANTS, "--list", "--half", "open"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert len(rows) >= 66
    assert [name for name, count, _ in rows if int(count) == 0] == []
    assert all(mistake.endswith(".") for _, _, mistake in rows)
