"""Imports, by name and not by the clock: a script under supervision starts as it would alone."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cold

HEAVY = {"torch", "numpy", "rich", "typer", "click", "libcst", "safetensors"}


def imported_by(code):
    code = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    return set(json.loads(done.stdout))


def test_the_package_imports_nothing_heavy():
    assert not HEAVY & imported_by("import truestep")


def test_asking_what_is_there_imports_nothing_heavy():
    assert not HEAVY & imported_by("import truestep\ndir(truestep)\ntruestep.__version__\ntruestep.Severity")


@pytest.mark.parametrize("code", ["import truestep.cli", "import truestep.rules\ntruestep.rules.all_rules()"])
def test_the_command_line_and_the_rules_import_nothing_heavy(code):
    assert not HEAVY & imported_by(code)


@pytest.mark.parametrize("name", ["Session", "watch"])
def test_what_watches_waits_for_torch(name):
    assert not HEAVY & imported_by(f"import truestep\ntruestep.{name}")
