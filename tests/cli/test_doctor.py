"""The command as a process: on this machine, without torch, in a folder that refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import truestep.doctor

SCHEMA = json.loads(Path(truestep.doctor.__file__).with_name("doctor.schema.json").read_text(encoding="utf-8"))
WITHOUT_TORCH = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {"torch", "numpy"} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


def doctor(*arguments, before="", **variables):
    code = f"{before}\nfrom truestep.cli import main\nmain(['doctor', *__import__('sys').argv[1:]])"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"COLUMNS": "80", "NO_COLOR": "1", **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        env=environment,
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Output of the command on this machine, on one of its processors and with two threads, for programs."""
    before = (
        "import atexit, os, sys\n"
        "atexit.register(lambda: sys.stderr.write(f'torch imported: {\"torch\" in sys.modules}'))\n"
        "if hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    )
    return doctor("--json", str(tmp_path_factory.mktemp("lab")), before=before, OMP_NUM_THREADS="2")


@pytest.mark.program
def test_json_on_this_machine_is_as_its_schema_says(here):
    Draft202012Validator(SCHEMA).validate(json.loads(here.stdout))


@pytest.mark.program
def test_the_process_itself_imports_no_torch(here):
    assert here.stderr == "torch imported: False"


@pytest.mark.program
def test_what_it_says_of_this_machine_is_true(here):
    import torch

    told = json.loads(here.stdout)
    assert told["facts"]["torch"]["version"] == str(torch.__version__)
    assert told["facts"]["torch"]["failure"] is None
    assert told["facts"]["torch"]["threads"] == 2
    assert told["facts"]["interpreter"]["executable"] == sys.executable
    assert told["facts"]["variables"]["OMP_NUM_THREADS"] == "2"
    seen = torch.accelerator.device_count() if torch.accelerator.is_available() else 0
    assert len(told["facts"]["accelerators"]) == seen
    assert len(told["facts"]["processors"]["speeds"]) == (0 if seen else 2)
    assert told["ready"] == (here.returncode == 0) == (not [one for one in told["advice"] if one["level"] == "problem"])


@pytest.mark.program
@pytest.mark.skipif(sys.platform != "linux" or os.cpu_count() == 1, reason="needs affinity and two processors")
def test_a_process_on_one_processor_is_reported(here):
    told = json.loads(here.stdout)
    assert told["facts"]["processors"]["allowed"] == 1
    (advice,) = [one for one in told["advice"] if one["slug"] == "threads-too-many"]
    assert advice["command"] == "export OMP_NUM_THREADS=1"


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """Output of the command where torch is not installed, and the folder above the given one."""
    folder = tmp_path_factory.mktemp("lab")
    return doctor(str(folder / "runs"), before=WITHOUT_TORCH), folder


def test_without_torch_all_else_is_reported_and_the_exit_code_is_1(without_torch):
    done, _ = without_torch
    assert done.stderr == ""
    assert done.returncode == 1
    assert "problem: install torch" in done.stdout
    for what in ("python", "processor", "memory", "disk", "torch.compile", "truestep"):
        assert f"\n  {what} " in done.stdout
    assert done.stdout.rstrip().rpartition("\n")[2].startswith("not ready: ")


def test_it_changes_nothing_in_the_folder(without_torch):
    assert list(without_torch[1].iterdir()) == []


def test_no_rows_are_wider_than_80_but_those_with_paths_and_commands(without_torch):
    rows = without_torch[0].stdout.splitlines()
    assert not [row for row in rows if len(row) > 80 and "/" not in row and "$ " not in row]


@pytest.mark.program
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_folder_that_refuses_is_a_problem():
    done = doctor("/proc", before=WITHOUT_TORCH)
    assert done.returncode == 1
    assert "problem: nothing can be written there" in done.stdout
