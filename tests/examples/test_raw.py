"""The plain programs that experiments are shown on: they run, and their mistakes are found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RAW = Path(__file__).parents[2] / "examples" / "raw"
DATA = Path(os.environ.get("TRUESTEP_DATA", RAW.parents[2] / "shared" / "data"))
FOUND = {
    "fashion": set(),
    "reviews": {"softmax-before-cross-entropy", "eval-mode-missing"},
    "characters": {"clip-after-step", "scheduler-wrong-cadence"},
}
SHORT = {
    "fashion": ["--images", "640", "--epochs", "2"],
    "reviews": ["--epochs", "1"],
    "characters": ["--epochs", "2", "--characters", "10000"],
}


@pytest.mark.program
@pytest.mark.skipif(not (DATA / "rt-polarity").is_dir(), reason="needs the data sets (TRUESTEP_DATA)")
@pytest.mark.parametrize("name", FOUND)
def test_what_is_wrong_in_a_raw_program_is_found(name, tmp_path):
    command = [sys.executable, "-m", "truestep", "run", "--format", "json", "--output", "report.json"]
    command += [str(RAW / f"{name}.py"), *SHORT[name]]
    environment = os.environ | {"TRUESTEP_DATA": str(DATA.resolve())}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {finding["rule"] for finding in report["findings"]} == FOUND[name]


def test_every_raw_program_is_tried():
    assert {path.stem for path in RAW.glob("*.py")} == set(FOUND)
