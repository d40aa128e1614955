"""The recipes of examples/clusters under simulated schedulers: preempted runs end as uninterrupted ones."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hosts import reason_without, two_hosts
from schedulers import IndexedJob, Slurm
from several_ranks import warm_ranks

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "clusters"
on_hosts = pytest.mark.skipif(bool(reason_without()), reason=reason_without())
EPOCHS = "20"


def manifest() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((RECIPES / "job.yaml").read_text()))


def torchrun_options(words: list[str]) -> Any:
    """Return the options as torchrun reads them."""
    from torch.distributed.run import get_args_parser

    return get_args_parser().parse_args(words)


def test_the_batch_script_is_one_that_bash_reads() -> None:
    done = subprocess.run(["bash", "-n", str(RECIPES / "train.sbatch")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_quotes_the_files() -> None:
    page = (ROOT / "docs" / "how-to" / "clusters.md").read_text(encoding="utf-8")
    quoted = dict(re.findall(r'^```\w+ title="examples/clusters/(\S+)"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL))
    assert quoted == {name: (RECIPES / name).read_text(encoding="utf-8") for name in ("train.sbatch", "job.yaml")}


def test_torchrun_knows_the_options_of_the_recipes() -> None:
    (job,) = (part for part in manifest() if part["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    script = re.search(r"torchrun \\\n(.*?) &$", (RECIPES / "train.sbatch").read_text(), re.MULTILINE | re.DOTALL)
    assert script is not None
    for words in (container["args"], script.group(1).replace("\\\n", " ").replace('"', "").split()):
        options = torchrun_options(words)
        assert (options.training_script, options.rdzv_backend) == ("train.py", "c10d")


def test_there_is_time_to_save_before_the_kill() -> None:
    (job,) = (part for part in manifest() if part["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    environment = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    script = (RECIPES / "train.sbatch").read_text()
    for text, until_kill in (
        (environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"], pod["terminationGracePeriodSeconds"]),
        (re.search(r"SHUTDOWN_TIMEOUT=(\d+)", script)[1], int(re.search(r"signal=B:USR1@(\d+)", script)[1])),  # type: ignore[index]
    ):
        assert 60 <= int(text) < until_kill


# --- under simulated schedulers ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUESTEP_MAX_EPOCHS", EPOCHS)
    monkeypatch.setenv("TRUESTEP_DEVICE", "cpu")
    shutil.copytree(RECIPES, tmp_path / "job")
    (tmp_path / "network").mkdir()
    return tmp_path / "job"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an uninterrupted run on two ranks."""
    place = tmp_path_factory.mktemp("whole")
    arguments = ["--max-epochs", EPOCHS, "--device", "cpu", "--out", str(place / "run")]
    code, _, err = warm_ranks([str(RECIPES / "train.py"), *arguments], place)
    assert code == 0, err
    return place / "run"


def saved(run: Path, epochs: int) -> Callable[[], bool]:
    """Return a condition: the log has so many epochs, and a checkpoint exists."""

    def is_there() -> bool:
        log = run / "metrics.jsonl"
        last = run / "checkpoints" / "last"
        return last.exists() and log.exists() and log.read_text().count('"accuracy"') >= epochs

    return is_there


def assert_equal(run: Path, whole: Path) -> None:
    for name in ("checkpoints/last/model.safetensors", "metrics.jsonl"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name


@on_hosts
@pytest.mark.slow
def test_a_job_of_slurm_is_queued_again_at_its_limit_and_when_preempted(folder: Path, whole: Path) -> None:
    run = folder / "runs" / "lab"
    with two_hosts(folder.parent / "network") as hosts:
        slurm = Slurm(folder / "train.sbatch", folder, hosts)
        starts = slurm.run(("limit", saved(run, 3), 60), ("preempted", saved(run, 8), 60))
    assert [start.code == 0 for start in starts] == [False, False, True], starts[-1].log
    assert all(start.code is not None for start in starts), "ended in the time before the kill"
    assert "SIGTERM: finishing the step and saving" in starts[0].log
    assert_equal(run, whole)


@on_hosts
@pytest.mark.slow
def test_a_job_of_slurm_that_is_killed_without_time_loses_no_more_than_an_epoch(folder: Path, whole: Path) -> None:
    run = folder / "runs" / "lab"
    with two_hosts(folder.parent / "network") as hosts:
        slurm = Slurm(folder / "train.sbatch", folder, hosts)
        starts = slurm.run(("preempted", saved(run, 5), 0))
    assert [start.code for start in starts] == [None, 0], starts[-1].log
    assert_equal(run, whole)


@on_hosts
@pytest.mark.slow
def test_a_job_of_slurm_that_fails_is_not_queued_again(folder: Path) -> None:
    (folder / "train.py").write_text("raise ValueError('a mistake')\n")
    with two_hosts(folder.parent / "network") as hosts:
        slurm = Slurm(folder / "train.sbatch", folder, hosts)
        (start,) = slurm.run(("limit", lambda: False, 60))
    assert start.code not in (None, 0)
    assert "a mistake" in start.log


@pytest.fixture
def pods(folder: Path) -> Iterator[tuple[Callable[[], IndexedJob], Path]]:
    volume = folder.parent / "volume"
    volume.mkdir()
    with two_hosts(folder.parent / "network", names=("lab-0", "lab-1"), domain="lab") as hosts:
        yield lambda: IndexedJob(manifest(), folder, volume, hosts, PROCESSES="1"), volume / "lab"


@on_hosts
@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "grace_s"), [(1, None), (0, None), (1, 0.0)], ids=["second", "first", "second without time"]
)
def test_a_job_of_kubernetes_goes_on_in_new_pods(
    pods: tuple[Callable[[], IndexedJob], Path], whole: Path, index: int, grace_s: float | None
) -> None:
    job, run = pods
    starts = job().run((index, saved(run, 5), grace_s))
    assert [of_index[-1].code for of_index in starts] == [0, 0]
    assert len(starts[index]) >= 2
    assert (starts[index][0].code is None) == (grace_s is not None)
    assert_equal(run, whole)
