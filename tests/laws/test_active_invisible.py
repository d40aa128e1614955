"""Law 1: calls of copies leave nothing behind, in any program."""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
from planted import in_turns, plant, reached
from tiers import few
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, TensorDataset

import truestep.probes.active
import truestep.probes.copies
import truestep.probes.evaluation
import truestep.probes.figures
import truestep.probes.variables
from truestep.config import Options
from truestep.supervision import Session

PACKAGES = (
    truestep.probes.active,
    truestep.probes.copies,
    truestep.probes.evaluation,
    truestep.probes.figures,
    truestep.probes.variables,
)
HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
CHECKED = sorted(path.stem for path in (SCRIPTS / "active").glob("[a-z]*.py"))
OTHERS = ["failing", "loader_workers", "own_hooks", "rnn_dropout", "two_models"]
SLOW = OTHERS[1:]
"""Part of `make test-all`: the checks have little to do in them."""
SKIPPED = {"side_effects"}
SHORTEST = "side_effects"
"""Part of `make test`, the others of `make programs`."""


def python(script: Path, *options: str) -> tuple[int, str, str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(SCRIPTS)}
    command = [sys.executable, *options, str(script)]
    done = subprocess.run(command, cwd=SCRIPTS, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("truestep: ")]
    return done.returncode, done.stdout, "\n".join(said)


def watched(script: Path, folder: Path) -> tuple[tuple[int, str, str], dict[str, Any]]:
    report = folder / "report.json"
    options = ["-m", "truestep", "run", "--format", "json", "--output", str(report)]
    run = python(script, *options)
    return run, json.loads(report.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW) + [pytest.mark.program] * (name != SHORTEST))
        for name in [*OTHERS, *CHECKED]
    ],
)
def test_a_program_is_bit_identical(name: str, tmp_path: Path) -> None:
    script = (SCRIPTS if name in OTHERS else SCRIPTS / "active") / f"{name}.py"
    plain = python(script)
    run, report = watched(script, tmp_path)
    assert plain[0] == 0, plain[2]
    assert run == plain
    assert report["internal_errors"] == []
    if name in OTHERS:
        return
    verdicts = {verdict["rule"]: verdict for verdict in report["verdicts"]}
    for rule in ("batch-first-missing", "augmentation-in-evaluation"):
        if name in SKIPPED:
            assert verdicts[rule]["outcome"] == "not-observed"
            assert "not checked: its code" in verdicts[rule]["reason"]
        else:
            assert verdicts[rule]["outcome"] != "not-observed", verdicts[rule]


class Points(Dataset):  # type: ignore[type-arg]
    def __init__(self) -> None:
        self.x = torch.randn(24, 5, 3)

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.x[index] + torch.randn(5, 3), int(self.x[index].sum() > 0)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 2)
        self.mean = torch.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.mean((0, 1))
        x = x - self.mean
        out, _ = self.lstm(x.reshape(x.shape))
        return self.head(out[:, -1])  # type: ignore[no-any-return]


def train() -> list[Any]:
    """Train and evaluate; return the results."""
    torch.manual_seed(0)
    data = Points()
    table = TensorDataset(torch.randn(40, 5, 3), torch.randint(0, 2, (40,)))
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    parts = torch.utils.data.random_split(data, [16, 8])
    said: list[Any] = []
    for _epoch in range(2):
        model.train()
        for x, y in DataLoader(parts[0], 8, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            said.append(loss.item())
        model.eval()
        with torch.no_grad():
            said += [model(x).sum().item() for x, _ in DataLoader(parts[1], 4)]
            said += [model(x).sum().item() for x, _ in DataLoader(ConcatDataset([table, parts[0]]), 8)]
            for x, y in DataLoader(data, 24):
                scores = model(x)
                predicted = scores.argmax(1)
                recall = ((predicted == 1) & (y == 1)).sum().item() / max(1, (predicted == 1).sum().item())
                perplexity = 2 ** nn.functional.cross_entropy(scores, y).item()
                said += [recall, perplexity]
        torch.save({"model": model.state_dict(), "more": [model.mean[:2]]}, io.BytesIO())
    return [*said, *(value.clone() for value in model.state_dict().values()), torch.get_rng_state()]


PLAIN = train()


def same(result: list[Any]) -> None:
    for one, two in zip(result, PLAIN, strict=True):
        assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


def test_findings_of_the_checked_program() -> None:
    with Session(Options(active=True)) as session:
        same(train())
    summary = session.stop()
    found = {"batch-first-missing", "augmentation-in-evaluation", "checkpoint-incomplete"}
    assert found <= {finding.rule for finding in session.findings}
    assert summary.internal_errors == ()


def internals() -> Iterator[str]:
    """Name every function and method of the checks on copies that is not an entry."""
    entries = {f"ActiveProbe.{name}" for name in ("drawn", "install", "met", "passed", "returned", "saved")}
    names = [info.name for one in PACKAGES for info in pkgutil.walk_packages(one.__path__, f"{one.__name__}.")]
    for module in map(importlib.import_module, names):
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__:
                continue
            if isinstance(value, FunctionType):
                yield f"{module.__name__}:{name}"
            elif inspect.isclass(value):
                for method, body in vars(value).items():
                    if isinstance(body, FunctionType) and not method.startswith("__"):
                        if f"{name}.{method}" not in entries:
                            yield f"{module.__name__}:{name}.{method}"


def _modules() -> list[Any]:
    places = tuple(one.__name__ for one in PACKAGES)
    return [module for name, module in list(sys.modules.items()) if name.startswith(places)]


def fail(names: Collection[str], *, once: bool) -> list[str]:
    """Run the program while internals raise; check that it is as it was, and return those that were called."""
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            plant(patch, name, _modules(), calls, once)
        with Session(Options(active=True)) as session:
            result = train()
    same(result)
    assert all("Planted" in error for error in session.stop().internal_errors)
    return calls


@functools.cache
def called() -> frozenset[str]:
    def run() -> None:
        with Session(Options(active=True)):
            same(train())

    return reached(internals(), run)


MODULES = sorted({name.partition(":")[0] for name in internals()})


@pytest.mark.parametrize("module", few(6, MODULES))
def test_internals_that_raise_once_never_reach_the_program(module: str) -> None:
    """Those of a file in one run, and in the next those that were not reached because an earlier one raised."""
    in_turns([name for name in called() if name.partition(":")[0] == module], functools.partial(fail, once=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(internals()))
def test_an_internal_that_always_raises_never_reaches_the_program(name: str) -> None:
    fail([name], once=False)
