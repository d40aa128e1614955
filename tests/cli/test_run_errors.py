"""Bad input to `truestep run`: an error that teaches, exit code 2, and never a traceback of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from truestep.cli import main
from truestep.cli.replay import read
from truestep.report.json import document
from truestep.rules import all_rules


def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "truestep", "run", *arguments]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('ran')")
    (tmp_path / "wrong.py").write_text("print('never')\nx = = 1\n")
    (tmp_path / "binary.py").write_bytes(b"x = '\xff\xfe'\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "broken.pyc").write_bytes(b"1234")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/wrong.py").write_text("if:\n")
    (tmp_path / "file").write_text("")
    return tmp_path


CASES: dict[str, tuple[list[str], list[str]]] = {
    "no such script": (["trian.py"], ['NoSuchScript: script "trian.py" does not exist', "nearest: train.py"]),
    "no such folder": (["no/train.py"], ['expected the folder "no"']),
    "nothing similar": (["zzzzzzz"], ["expected it in"]),
    "no such module": (
        ["-m", "nosuch.tool"],
        ['NoSuchScript: "nosuch.tool" cannot be run', "No module named 'nosuch'"],
    ),
    "a file as a module": (["-m", "train.py"], ['"train.py" cannot be run', "got a file", "drop -m"]),
    "package without main": (["-m", "pkg"], ['"pkg" cannot be run', "pkg.__main__"]),
    "folder without main": (["pkg"], ['"pkg" cannot be run', "__main__.py"]),
    "syntax error": (
        ["wrong.py"],
        ["ScriptSyntaxError: wrong.py is not valid Python", "line 2: invalid syntax: x = = 1"],
    ),
    "syntax error in a module": (["-m", "pkg.wrong"], ["ScriptSyntaxError", "wrong.py is not valid", "line 1"]),
    "wrong encoding": (["binary.py"], ["ScriptSyntaxError: binary.py is not valid Python", "utf-8"]),
    "null bytes": (["null.py"], ["ScriptSyntaxError: null.py is not valid Python", "null bytes"]),
    "broken bytecode": (["broken.pyc"], ['NoSuchScript: "broken.pyc" cannot be read']),
    "record is a file": (
        ["--record", "file", "train.py"],
        ["UnwritableFolder: the record cannot be written to", "--record"],
    ),
    "record below a file": (["--record", "file/x", "train.py"], ["UnwritableFolder", "Not a directory"]),
    "output is a folder": (
        ["--output", "pkg", "train.py"],
        ["UnwritableFolder: the report cannot be", "--output FILE"],
    ),
    "unknown rule": (["--select", "mising-zero-grad", "train.py"], ["UnknownRule", "nearest: missing-zero-grad"]),
    "unknown ignored rule": (["--ignore", "nonsense", "train.py"], ["UnknownRule", "truestep rules"]),
    "budget": (["--budget", "lots", "train.py"], ["BadConfiguration"]),
    "steps": (["--steps", "0", "train.py"], ["--steps"]),
    "format": (["--format", "xml", "train.py"], ["--format", "sarif"]),
    "nothing to run": ([], ["SCRIPT"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_before_the_script_runs(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, expected = CASES[name]
    if name in ("no such module", "package without main", "folder without main", "syntax error in a module"):
        code, out, err = run(folder, *arguments)  # found out by python's own machinery, with the process prepared
    else:
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as left:
            main(["run", *arguments])
        code, (out, err) = left.value.code, capsys.readouterr()
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "ran" not in err.split()
    for part in expected:
        assert part in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes everything")
def test_unreadable_script_and_unwritable_record(folder: Path) -> None:
    (folder / "train.py").chmod(0)
    code, _, err = run(folder, "train.py")
    assert (code, '"train.py" cannot be read' in err) == (2, True)
    (folder / "train.py").chmod(0o600)
    folder.chmod(0o500)
    code, _, err = run(folder, "--record", "rec", "train.py")
    folder.chmod(0o700)
    assert (code, "UnwritableFolder" in err) == (2, True)


@pytest.mark.cold
def test_without_torch_the_script_is_not_begun(folder: Path) -> None:
    block = folder / "block"
    block.mkdir()
    # As an environment without torch looks to importlib: the folder that holds it is not searched for it.
    (block / "sitecustomize.py").write_text(
        "import importlib.machinery as m\n"
        "find = m.PathFinder.find_spec.__func__\n"
        "def find_spec(cls, name, path=None, target=None):\n"
        "    return None if name == 'torch' else find(cls, name, path, target)\n"
        "m.PathFinder.find_spec = classmethod(find_spec)\n"
    )
    code, out, err = run(folder, "train.py", PYTHONPATH=str(block))
    assert (code, out) == (2, "")
    assert err.startswith("TorchMissing: torch is not installed for this Python\n")
    assert "pip install torch" in err


def test_script_without_torch_gets_a_note_and_its_own_exit_code(folder: Path) -> None:
    (folder / "train.py").write_text("print('ran'); raise SystemExit(4)")
    note = "truestep: nothing was checked: the script called sys.exit before it imported torch\n"
    assert run(folder, "--fail-on", "error", "train.py") == (4, "ran\n", note)
    assert run(folder, "--quiet", "train.py") == (4, "ran\n", "")
    (folder / "train.py").write_text("print('ran')")
    note = "truestep: nothing was checked: the script never imported torch\n"
    assert run(folder, "train.py") == (0, "ran\n", note)


@pytest.mark.program
def test_script_that_dies_at_an_import_was_not_checked(folder: Path) -> None:
    for before, words in [("", "before it imported torch"), ("import torch\n", "before its first step")]:
        (folder / "train.py").write_text(f"{before}import no_such_package\n")
        code, _, err = run(folder, "train.py", COLUMNS="120")
        assert code == 1
        last = err.splitlines()[-1].removeprefix("truestep: ")
        assert last == f"nothing was checked: the script ended with ModuleNotFoundError {words}"
        code, _, err = run(folder, "--record", "rec", "--format", "json", "--output", "out.json", "train.py")
        report = json.loads((folder / "out.json").read_text())
        assert report["headline"] == last
        assert report["coverage"]["error"] == "ModuleNotFoundError: No module named 'no_such_package'"
    assert {**document(read(folder / "rec", tuple(all_rules().values()))), "record": None} == {**report, "record": None}


def test_every_rule_id_is_accepted(folder: Path) -> None:
    for id in all_rules():
        (folder / "x.py").write_text("")
    assert run(folder, "--quiet", "--select", ",".join(all_rules()), "x.py") == (0, "", "")
