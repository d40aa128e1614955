"""Runs of the toolkit with parameters divided over ranks: the same results as one process, checkpoints, refusals."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from several_ranks import warm_ranks

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = (PROGRAMS / "toolkit_loops.py").read_text()
LOOPS = re.findall(r"@loop\ndef (\w+)", SOURCE)
WITHOUT_PARTS = ("losses_of_a_closure", "sparse_gradients", "parameters_out_of_use")
Results = dict[str, dict[str, Any]]


def loops(folder: Path, strategy: str, ranks: int) -> Results:
    code, out, err = warm_ranks([str(PROGRAMS / "toolkit_loops.py"), strategy], folder, ranks=ranks)
    assert code == 0, err
    assert err == ""
    return json.loads(out)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return loops(tmp_path_factory.mktemp("alone"), "fsdp", ranks=1)


def compare(alone: Results, found: Results) -> None:
    assert found.keys() == set(LOOPS) - set(WITHOUT_PARTS)
    for loop, own in found.items():
        for name in own.keys() - {"refused", "lr", "samples"}:
            assert own[name] == pytest.approx(alone[loop][name], abs=1e-5), (loop, name)


@pytest.mark.program
def test_two_ranks_with_parts_of_the_model_train_the_same_weights(alone: Results, tmp_path: Path) -> None:
    compare(alone, loops(tmp_path, "fsdp", ranks=2))


@pytest.mark.slow
def test_four_ranks_with_parts_of_the_model_train_the_same_weights(alone: Results, tmp_path: Path) -> None:
    compare(alone, loops(tmp_path, "fsdp", ranks=4))


REFUSALS = {
    "optimizer_before_the_model": "write model = run.model(model) before the optimizer is built",
    "lbfgs": "use another optimizer",
    "adafactor": "use another optimizer",
    "optimizer_that_torch_cannot_step": 'truestep: strategy="ddp" has whole parameters',
    "sparse": "sparse=False",
    "scalar": r"give it one: nn.Parameter(torch.zeros(1))",
    "lazy": "call the model on one batch before run.model()",
    "sharded_before": "leave fully_shard out",
    "wrong_block": "the model has no Conv2d",
    "another_method": 'register_fsdp_forward_method(model, "encode")',
    "a_part": "pass each module that the loop calls to run.model()",
    "average_of_a_part": "write run.ema(model), with the whole model",
    "a_block_that_one_rank_leaves_out": "the loss of rank 1 does not reach blocks.1.weight",
    "a_registered_method": "",
}


@pytest.mark.program
def test_loops_that_cannot_train_parts_are_refused(tmp_path: Path) -> None:
    code, out, err = warm_ranks([str(PROGRAMS / "fsdp_refusals.py")], tmp_path)
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said.keys() == REFUSALS.keys()
    for case, remedy in REFUSALS.items():
        assert remedy in said[case], case
        assert bool(remedy) == bool(said[case]), case


# --- checkpoints ---


def resumed(folder: Path, *arguments: str, ranks: int) -> tuple[int, str, str]:
    return warm_ranks([str(PROGRAMS / "toolkit_resume.py"), str(folder / "run"), *arguments], folder, ranks=ranks)


def numbers(out: str) -> list[float]:
    return [float(number) for number in out.split()]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """Return the folder of a run that was stopped on two ranks, and the results of one that was not."""
    whole, parts = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("parts")
    code, out, err = resumed(whole, "fsdp", ranks=2)
    assert code == 0, err
    code, _, err = resumed(parts, "7", "1", "fsdp", ranks=2)
    assert code == 143, err
    return parts, numbers(out)


@pytest.mark.program
@pytest.mark.parametrize(
    ("strategy", "ranks"), [("fsdp", 2), ("fsdp", 1), pytest.param("fsdp", 4, marks=pytest.mark.slow), ("ddp", 2)]
)
def test_a_run_goes_on_with_any_number_of_ranks_and_strategy(
    stopped: tuple[Path, list[float]], tmp_path: Path, strategy: str, ranks: int
) -> None:
    folder, expected = stopped
    shutil.copytree(folder, tmp_path / "parts", symlinks=True)
    code, out, err = resumed(tmp_path / "parts", strategy, ranks=ranks)
    assert code == 0, err
    assert numbers(out) == pytest.approx(expected, abs=1e-5)


@pytest.mark.program
def test_a_run_with_whole_models_goes_on_with_parts(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    code, whole, err = resumed(tmp_path / "whole", "ddp", ranks=2)
    assert code == 0, err
    (tmp_path / "parts").mkdir()
    code, _, err = resumed(tmp_path / "parts", "7", "1", "ddp", ranks=2)
    assert code == 143, err
    code, out, err = resumed(tmp_path / "parts", "fsdp", ranks=2)
    assert code == 0, err
    assert numbers(out) == pytest.approx(numbers(whole), abs=1e-5)


@pytest.mark.program
def test_the_weights_of_a_checkpoint_have_plain_keys_and_shapes(stopped: tuple[Path, list[float]]) -> None:
    from safetensors.torch import load_file

    folder, _ = stopped
    state = load_file(folder / "run" / "checkpoints" / "last" / "model.safetensors")
    assert {key: tuple(value.shape) for key, value in state.items()} == {
        "0.weight": (16, 6),
        "0.bias": (16,),
        "3.weight": (1, 16),
        "3.bias": (1,),
    }


@pytest.mark.program
def test_each_rank_writes_its_rows_of_the_moments(stopped: tuple[Path, list[float]]) -> None:
    from safetensors.torch import load_file

    folder, _ = stopped
    files = [folder / "run" / "checkpoints" / "last" / f"parts-rank{rank}.safetensors" for rank in range(2)]
    shapes = [{key: tuple(value.shape) for key, value in load_file(file).items()} for file in files]
    assert shapes[0]["optimizer/state/0/exp_avg"] == shapes[1]["optimizer/state/0/exp_avg"] == (8, 6)
    assert "optimizer/state/3/exp_avg" not in shapes[1], "the first rank has the one row of the last bias"


@pytest.mark.program
@pytest.mark.parametrize(("moment", "rank"), [("part", 0), ("part", 1), ("commit", 0)])
def test_a_checkpoint_that_a_killed_rank_left_half_is_not_used(
    stopped: tuple[Path, list[float]], tmp_path: Path, moment: str, rank: int
) -> None:
    _, expected = stopped
    (tmp_path / "killed").mkdir()
    killed = [str(PROGRAMS / "killed_in_save.py"), moment, str(rank), str(tmp_path / "killed" / "run")]
    code, _, err = warm_ranks(killed, tmp_path / "killed")
    assert code != 0, err
    folder = tmp_path / "killed" / "run" / "checkpoints"
    assert {path.name for path in folder.glob("[.s]*tep-*")} == {"step-000005", ".tmp-step-000010"}
    code, out, err = resumed(tmp_path / "killed", "fsdp", ranks=2)
    assert code == 0, err
    assert numbers(out) == pytest.approx(expected, abs=1e-5)
    assert not list(folder.glob(".tmp*"))
