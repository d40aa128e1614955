"""The floors of the house: upper ones import lower ones, never back, and the lower ones need no torch."""

import re
import tomllib
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def test_every_contract_is_kept(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    status = cli.lint_imports(no_cache=True)
    said = capsys.readouterr().out
    assert status == cli.EXIT_STATUS_SUCCESS, said
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in said


def test_every_package_has_its_floor():
    (floors,) = [contract["layers"] for contract in CONTRACTS if contract["name"].startswith("floors")]
    named = {name.strip() for floor in floors for name in re.split(r"[|:]", floor)}
    package = ROOT / "src" / "truestep"
    present = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert {f"truestep.{name}" for name in present - {"__init__", "__main__"}} <= named


@pytest.mark.parametrize(
    "name", ["rules", "lint", "syntax", "report", "events", "findings", "source", "errors", "config"]
)
def test_torch_is_forbidden_where_it_must_be(name):
    (forbidden,) = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]
    assert f"truestep.{name}" in forbidden["source_modules"]
    assert "torch" in forbidden["forbidden_modules"]
