"""Listings of pages are run, and print the quoted outputs: folklore, files of tests, a factory to plan."""

import contextlib
import io
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).resolve().parents[2] / "docs"
pytestmark = pytest.mark.program
CLAIM = re.compile(r"^### (.+?)\n(?:(?!^###).)*?^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
CHAOTIC = 'Without zero_grad the model cannot learn"'
TIMED = 'fused=True is for CUDA"'

TRAINING = """\
import torch


def fit(steps):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return model
"""
"""With the step at the line that the page on pytest quotes."""

FUNCTIONS = """\
import pytest
import torch
import truestep
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 1))
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=16, shuffle=True)


def train(model, loader, steps=12):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    while steps > 0:
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            steps -= 1
            if not steps:
                return


def fit(batches):
    train(model, loader, batches)


def fit_with_samples_of_dropout():
    train(model, loader)
    others = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=16)
    with torch.no_grad():
        samples = torch.stack([torch.cat([model(x) for (x,) in others]) for _ in range(4)])
    assert samples.std(dim=0).mean() > 0
"""


def text(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)


def ran(folder, *command):
    """Return the output of a command in a terminal of 80 columns."""
    outside = {name: value for name, value in os.environ.items() if name != "TRUESTEP_WATCH"}
    environment = outside | {"COLUMNS": "80", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.stdout


# --- folklore ---------------------------------------------------------------------------------------------------------


def test_every_claim_has_a_listing_and_its_output():
    page = text("explanation/folklore")
    assert [claim for claim, _, _ in CLAIM.findall(page)] == re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert len(blocks("explanation/folklore")) == len(CLAIM.findall(page))


def is_near(claim, printed, quoted):
    """Return whether the numbers of an output are those of the page."""
    values, expected = (list(map(float, NUMBER.findall(one))) for one in (printed, quoted))
    if claim.endswith(TIMED):
        return values[0] > values[1] and expected[0] > expected[1]
    return values == pytest.approx(expected, rel=0.05, abs=0.2 if claim.endswith(CHAOTIC) else 1e-9)


@pytest.mark.skipif(
    f"torch {torch.__version__.rpartition('.')[0]}." not in text("explanation/folklore")[:200], reason="other numbers"
)
@pytest.mark.parametrize(("claim", "code", "quoted"), CLAIM.findall(text("explanation/folklore")))
def test_a_listing_prints_the_quoted_output(claim, code, quoted):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "listing.py", "exec"), {"__name__": "listing"})
    finally:
        torch.set_num_threads(threads)
    printed = out.getvalue()
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", quoted)
    assert is_near(claim, printed, quoted), printed


# --- tests ------------------------------------------------------------------------------------------------------------


def test_the_test_of_the_page_on_pytest_fails_as_quoted(tmp_path):
    (tmp_path / "test_train.py").write_text(TRAINING + "\n\n" + blocks("how-to/pytest")[0])
    printed = ran(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_train.py").splitlines()
    terminal = text("how-to/pytest").split("    $ pytest -q test_train.py\n")[1].split("\n\nA clean test")[0]
    for part in textwrap.dedent(terminal).split("...\n"):
        first, *others = part.splitlines()
        start = printed.index(first)
        assert printed[start : start + 1 + len(others)] == [first, *others]


def write(folder, tests, functions):
    for number, code in enumerate(tests):
        (folder / f"test_{number}.py").write_text(f"{functions}\n\n{code}")


def test_other_tests_of_pages_pass_and_check_something(tmp_path):
    tests = [
        blocks("how-to/pytest")[1], *blocks("how-to/pytest", "py"), *blocks("how-to/ci"),
        *blocks("reference/api/supervision"),
    ]  # fmt: skip
    command = ("pytest", "-q", "-p", "no:cacheprovider", "--tb=no")
    write(tmp_path, tests, FUNCTIONS)
    assert "\n4 passed" in ran(tmp_path, *command)
    write(tmp_path, tests, FUNCTIONS.replace("            optimizer.zero_grad()\n", ""))
    (tmp_path / "test_0.py").write_text(f"{FUNCTIONS}\n\n{tests[0]}".replace('allow=("eval-mode-missing",), ', ""))
    printed = ran(tmp_path, *command)
    assert "test_0.py::test_dropout_as_uncertainty - Failed: error[eval-mode-missi" in printed
    assert "test_2.py::test_training_is_clean - Failed: error[missing-zero-grad]" in printed
    assert "test_4.py::test_training_is_clean - truestep.errors.FindingsRaised" in printed


# --- a factory --------------------------------------------------------------------------------------------------------
GPT = """\
import torch
from torch import nn


class GPT(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        self.tokens = nn.Embedding(32_000, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, 32_000, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


"""


def test_the_factory_of_the_page_on_memory_is_planned(tmp_path):
    (factory,) = blocks("how-to/memory")
    (command,) = re.findall(r"^    \$ truestep (plan --input .+)$", text("how-to/memory"), re.MULTILINE)
    (tmp_path / "language.py").write_text(GPT + factory.replace("layers=32", "layers=2"))
    printed = ran(tmp_path, "truestep", *command.split())
    assert "\nplan: language:seven_billion, " in printed
    assert "80 GB" in printed
    assert "FSDP2 on 8" in printed
