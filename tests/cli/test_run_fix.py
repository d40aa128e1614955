"""`truestep run --fix`: fixes after the report, made in the script only on request."""

import subprocess
import sys

import pytest

SCRIPT = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
"""
FIXED = SCRIPT.replace("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")


def run(script, *options):
    command = [sys.executable, "-m", "truestep", "run", *options, script.name]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


@pytest.mark.program
def test_fixes_are_shown_and_made_on_request(script):
    shown = run(script, "--fix")
    assert shown.returncode == 0, shown.stderr
    assert "--- a/train.py\n+++ b/train.py\n" in shown.stderr
    assert "+    optimizer.zero_grad()\n" in shown.stderr
    assert shown.stderr.endswith("truestep: 1 fix shown; --write makes it\n")
    assert script.read_text(encoding="utf-8") == SCRIPT
    made = run(script, "--fix", "--write")
    assert made.stderr.endswith("truestep: 1 fix made in train.py\n"), made.stderr
    assert script.read_text(encoding="utf-8") == FIXED
    again = run(script, "--fix", "--write")
    assert "missing-zero-grad" not in again.stderr
    assert script.read_text(encoding="utf-8") == FIXED


@pytest.mark.parametrize("options", [["--write"], ["--unsafe-fixes"], ["--fix", "--unsafe-fixes"]])
def test_options_without_those_before_them_are_refused(script, options):
    refused = run(script, *options)
    assert refused.returncode == 2
    assert "has no effect alone" in refused.stderr
