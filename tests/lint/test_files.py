"""Files: those that are checked, and the problems of those that cannot be."""

import os
import sys
from pathlib import Path

import pytest

from truestep.lint.checking import check
from truestep.lint.discovery import files
from truestep.lint.engine import Code, code_of, inspecting, read_code
from truestep.lint.results import Problem

BROKEN = """import torch
class N(torch.nn.Module):
    def forward(self, x):
        x = self.a(x)
        return torch.nn.functional.dropout(self.b(x))
"""
RULES = tuple(inspecting().values())


def found(folder, *paths, exclude=()):
    base = Path(folder)
    return [path.relative_to(base).as_posix() for path in files([base, *paths], exclude, base)]


def write(folder, **texts):
    for name, text in texts.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_python_files_and_notebooks_below_a_folder(tmp_path):
    for name in ("b.py", "a.ipynb", "c.txt", "in/d.py", ".venv/e.py", "node_modules/f.py", "in/__pycache__/g.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert found(tmp_path) == ["a.ipynb", "b.py", "in/d.py"]


def test_gitignore_of_all_folders_counts(tmp_path):
    for name in ("a.py", "old_a.py", "out/b.py", "in/c.py", "in/kept.py", "in/deep/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("old_*\n/out/\nkept.py\n", encoding="utf-8")
    (tmp_path / "in" / ".gitignore").write_text("c.py\n!kept.py\n", encoding="utf-8")
    assert found(tmp_path) == ["a.py", "in/kept.py"]
    inner = [path.name for path in files([tmp_path / "in"])]
    assert inner == ["kept.py"]
    assert [path.name for path in files([tmp_path / "out" / "b.py"])] == ["b.py"], "a named file is always checked"
    assert [path.name for path in files([tmp_path / "out"])] == ["b.py"], "and so is a named folder"


def test_exclude_has_the_form_of_gitignore(tmp_path):
    for name in ("a.py", "tests/b.py", "in/tests/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert found(tmp_path, exclude=["tests/"]) == ["a.py"]
    assert found(tmp_path, exclude=["/tests"]) == ["a.py", "in/tests/c.py"]


def test_a_file_that_is_named_twice_is_checked_once(tmp_path):
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    assert found(tmp_path, tmp_path / "a.py", tmp_path) == ["a.py"]


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert found(tmp_path) == ["a.py"]


UNREADABLE = {
    "binary": (b"import torch\0\1", "the file is binary"),
    "latin": ("import torch  # é".encode("latin-1"), "not UTF-8"),
    "encoding": (b"# coding: no-such-code\nimport torch", "unknown encoding"),
    "syntax": (b"import torch\ndef f(:\n", "syntax error"),
    "deep": (b"import torch\nx = " + b"(" * 250 + b"1" + b")" * 250, "syntax error: too many nested parentheses"),
    "sum": (b"import torch\nx = 1" + b" + 1" * 20_000, "nested too deeply"),
    "large": (b"import torch\n" + b"x = 1\n" * 2_000_000, "12 MB"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_unreadable_file_is_one_problem_and_the_rest_goes_on(tmp_path, kind):
    data, said = UNREADABLE[kind]
    (tmp_path / "a.py").write_bytes(data)
    (tmp_path / "b.py").write_text(BROKEN, encoding="utf-8")
    results = check(map(read_code, files([tmp_path])), RULES)
    (problem,) = results.problems
    assert problem.path.endswith("a.py")
    assert said in str(problem)
    assert results.files == 2
    assert [one.rule for one in results.shown()] == ["functional-dropout-always-on"]
    assert results.internal_errors == ()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_file_without_permission_is_a_problem(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(BROKEN, encoding="utf-8")
    path.chmod(0)
    assert isinstance(read_code(path), Problem)


def test_missing_file_is_a_problem(tmp_path):
    problem = read_code(tmp_path / "a.py")
    assert isinstance(problem, Problem)
    assert "cannot be read: No such file" in str(problem)


def test_nested_statements_are_read_without_a_crash():
    limit = sys.getrecursionlimit()
    text = "import torch\n" + "".join(" " * depth + "if x:\n" for depth in range(95)) + " " * 95 + "pass\n"
    chain = "import torch\nif x:\n    pass\n" + "elif y:\n    pass\n" * 400
    for code in (text, chain):
        results = check([code_of("a.py", code)], RULES)
        assert results.internal_errors == ()
    assert sys.getrecursionlimit() == limit


def test_byte_order_mark_and_line_ends_of_windows():
    code = code_of("a.py", b"\xef\xbb\xbf" + BROKEN.replace("\n", "\r\n").encode())
    assert isinstance(code, Code)
    (one,) = check([code], RULES).shown()
    assert one.primary.site.line == 5


def test_declared_encoding_is_used():
    code = code_of("a.py", "# coding: latin-1\nimport torch  # é".encode("latin-1"))
    assert isinstance(code, Code)
    assert "é" in code.text


def test_rule_that_fails_is_an_internal_error_and_the_others_go_on(monkeypatch):
    broken = inspecting()["graph-cut"]

    def fail(cls, program):
        raise ZeroDivisionError("in the rule")

    monkeypatch.setattr(broken, "inspect", classmethod(fail))
    results = check([code_of("a.py", BROKEN)], RULES)
    (error,) = results.internal_errors
    assert error.startswith("graph-cut in a.py")
    assert "ZeroDivisionError: in the rule" in error
    assert [one.rule for one in results.shown()] == ["functional-dropout-always-on"]
