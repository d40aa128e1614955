"""`truestep inspect` on the command line: exit codes, formats, and the width of the terminal."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    loss = nn.functional.cross_entropy(model(torch.randn(32, int(sys.argv[2]))), torch.randint(4, (32,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
"""


@pytest.fixture
def inspected(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")

    def run(*arguments, columns="80"):
        command = [sys.executable, "-m", "truestep", "inspect", *arguments]
        environment = os.environ | {"COLUMNS": columns, "NO_COLOR": "1"}
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, encoding="utf-8", env=environment
        )

    return run


@pytest.mark.program
def test_a_step_is_printed_without_the_output_of_the_script(inspected):
    done = inspected("train.py", "5", "8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("inspect: step 2 of SGD (train.py:12), 1 backward pass; the script was stopped")
    assert "step 0" not in done.stdout
    assert "0 Linear       (32, 16)    144" in done.stdout
    wide = inspected("--depth", "0", "train.py", "5", "8", columns="120").stdout
    assert "model Sequential (32, 8) (32, 4)    212" in wide
    assert "0 Linear" not in wide


@pytest.mark.program
def test_json_has_the_schema_and_all_numbers(inspected):
    done = inspected("--format", "json", "--step", "3", "train.py", "5", "8")
    made = json.loads(done.stdout)
    assert (made["schema"], made["step"], len(made["models"][0]["layers"])) == ("truestep.inspect/1", 3, 4)
    assert made["memory"]["parameters"] == 4 * 212


@pytest.mark.program
def test_exit_codes(inspected):
    done = inspected("--step", "9", "train.py", "5", "8")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the script finished after 5 steps, before step 9" in done.stderr
    assert "pass --step 5" in done.stderr
    done = inspected("train.py", "5", "7")
    assert done.returncode == 3
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in done.stderr
    assert "raised on (32, 7)" in done.stdout
    done = inspected("other.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'script "other.py" does not exist' in done.stderr
