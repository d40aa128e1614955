"""The checks of `tests/support/accelerator`: on a GPU where there is one, and on a stand-in for one everywhere.

The stand-in registers a device for a whole process, so all of its checks run in one separate process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.backend_registration
from accelerator.place import Skipped, place
from accelerator.running import everything

ROOT = Path(__file__).parents[2]
CHECKS = {check.__name__: check for check in everything()}
NOT_ON_THE_STAND_IN = {
    *(f"supervision_changes_nothing_of_{name}" for name in (
        "compiled", "compiled_with_graphs", "fused", "graphed_callable", "graphed_step", "pinned",
    )),
    "no_read_between_sampled_steps_of_fused",
    "what_is_captured_in_a_graph_is_not_called_clear",
    "a_graphed_forward_pass_leaves_the_rest_observed",
    "batches_come_from_the_gpu_and_the_data_sets_tensors_stay",
    "batches_for_a_gpu_are_pinned",
}  # fmt: skip


@pytest.fixture(scope="module")
def on_the_stand_in() -> dict[str, dict[str, Any]]:
    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch has no backends written in Python")
    folders = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support")])
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:truestep", "-m", "accelerator.running", "--device", "standin"],
        env={**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {result["check"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.program
@pytest.mark.parametrize("name", sorted(set(CHECKS) - NOT_ON_THE_STAND_IN))
def test_on_the_stand_in(name: str, on_the_stand_in: dict[str, dict[str, Any]]) -> None:
    result = on_the_stand_in[name]
    assert result["outcome"] == "passed", result["why"]


@pytest.mark.program
def test_what_the_stand_in_cannot_show_says_so(on_the_stand_in: dict[str, dict[str, Any]]) -> None:
    skipped = {name for name, result in on_the_stand_in.items() if result["outcome"] == "skipped"}
    assert skipped == NOT_ON_THE_STAND_IN


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_on_a_gpu(name: str) -> None:
    try:
        CHECKS[name](place("cuda"))
    except Skipped as why:
        pytest.skip(str(why))


# --- make gpu ------------------------------------------------------------------------------------------------------

NOT_INSTALLED = ("libcst", "PIL", "pandas", "polars", "rich", "safetensors", "sklearn", "torchmetrics", "typer", "tyro")
BENCH = ROOT / "bench" / "gpu.py"


def gpu(*arguments: str, **values: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(
        command, env={**os.environ, **values}, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.program
@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_without_a_gpu_it_says_so_in_one_line() -> None:
    done = gpu()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"make gpu: this machine has no CUDA device that torch {torch.__version__} can use\n"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("loader",), marks=pytest.mark.program),
        pytest.param(("checks", "step", "toolkit", "loader", "gpt"), marks=pytest.mark.slow),
    ],
    ids=len,
)
def test_it_runs_with_torch_and_numpy_alone(parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({NOT_INSTALLED}))\n")
    out = tmp_path / "gpu.json"
    done = gpu("--device", "cpu", "--quick", "--out", str(out), "--only", *parts, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(out.read_text(encoding="utf-8"))
    assert [part["part"] for part in told["parts"]] == list(parts)
    assert all(part["ended"] == "well" and len(part["rows"]) > 1 for part in told["parts"])
