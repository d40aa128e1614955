"""`make demo`, as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_whole_demo_ends_well():
    assert subprocess.run([sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True).returncode == 0
