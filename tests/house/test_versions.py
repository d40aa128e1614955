"""The versions that were checked are the same in the doctor, the documentation, the package and the Makefile."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from truestep.doctor.versions import CHECKED_PYTHON, CHECKED_TORCH, checked, written

pytestmark = pytest.mark.cold

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_page_has_a_row_for_every_version_that_was_checked():
    rows = re.findall(r"^\| (\d+\.\d+) \| (\d+\.\d+) \| \d{4}-\d\d-\d\d \|", PAGE, re.MULTILINE)
    assert {torch for torch, _ in rows} == set(checked()["torch"])
    assert {python for _, python in rows} == set(checked()["python"])


def test_the_package_names_the_versions_of_python_that_were_checked():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert named == checked()["python"]
    assert PROJECT["requires-python"] == f">={written(CHECKED_PYTHON[0])}"


def test_the_oldest_torch_that_is_allowed_and_the_pinned_one_were_checked():
    allowed = next(need for need in PROJECT["optional-dependencies"]["torch"] if need.startswith("torch"))
    assert allowed == f"torch>={written(CHECKED_TORCH[0])}"
    pinned = re.search(r"^torch==(\d+\.\d+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    assert pinned[1] in checked()["torch"]


def commands(*arguments: str) -> str:
    """Return the commands of make for an empty checkout."""
    made = subprocess.run(
        ["make", "--dry-run", "--always-make", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        check=True,
    )
    return made.stdout


def test_another_torch_and_python_have_an_environment_and_constraints_beside_the_usual_one():
    usual = commands("test")
    assert "python3 -m venv .venv\n" in usual
    assert "-c constraints.txt -e '.[dev]'" in usual
    assert "ruff check" in usual
    other = commands("test", "TORCH=2.15.0", "PYTHON=build/bin/python3.13")
    folder = ".venv-torch-2.15.0-python3.13"
    assert f"build/bin/python3.13 -m venv {folder}\n" in other
    assert f"sed 's/^torch==.*/torch==2.15.0/' constraints.txt >{folder}/constraints.txt" in other
    assert f"{folder}/bin/python -m pip install --quiet -c {folder}/constraints.txt -e '.[dev]'" in other
    assert f"{folder}/bin/python -m pytest" in other
    assert "ruff" not in other
    assert " .venv/" not in other


def test_another_python_alone_has_an_environment_of_its_own():
    other = commands("test", "PYTHON=python3.13")
    assert "python3.13 -m venv .venv-python3.13\n" in other
    assert "-c constraints.txt" in other
