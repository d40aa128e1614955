"""Exports and documentation have the same names."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from every import every

import truestep
import truestep.data
import truestep.debugging
import truestep.testing

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
OVERVIEW = (FOLDER / "python.md").read_text(encoding="utf-8")
REFERENCE = OVERVIEW + "\n".join(path.read_text(encoding="utf-8") for path in sorted((FOLDER / "api").glob("*.md")))


def named(text):
    """Every name that the page documents: directives and their listed members."""
    return {name.rpartition(".")[2] for name in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)} | set(
        re.findall(r"`(?:truestep\.)?(?:testing\.)?(\w+)`", text)
    )


MODULES = truestep, truestep.testing, truestep.data, truestep.debugging


@every("name", [name for module in MODULES for name in module.__all__])
def test_exported_name_is_documented(name):
    assert name in named(REFERENCE)


@every("name", [name for module in MODULES for name in module.__all__])
def test_the_overview_has_every_exported_name(name):
    assert re.search(rf"`(?:\w+\.)?{name}`", OVERVIEW)


@every("name", truestep.__all__)
def test_exported_name_is_there(name):
    assert getattr(truestep, name) is not None
    assert name in dir(truestep)


@every("target", re.findall(r"^::: ([\w.]+)$", REFERENCE, re.MULTILINE))
def test_documented_name_exists(target):
    assert pkgutil.resolve_name(target) is not None


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'wacht'"):
        truestep.wacht


def test_watch_can_be_called_whatever_was_imported_before():
    code = """
import truestep
for _ in range(2):
    truestep.watch()
import truestep.testing, truestep.supervision.session
truestep.watch()
from truestep import watch
watch()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
