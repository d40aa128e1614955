"""All rules on one file or on many: each file is read and modelled once; a rule that fails does not stop the others."""

from __future__ import annotations

import ast
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from truestep import source
from truestep.events import Site
from truestep.findings import Finding, Mark, Seen
from truestep.lint.notebooks import Notebook, notebook_of
from truestep.lint.reading import decoded, has_comments, matters, text_of
from truestep.lint.results import FileResults, Problem
from truestep.rules import Rule, catalogue
from truestep.syntax import Program, Scope, Suspicion

IN_SYNTAX = Seen(0, unit="syntax")
"""How often a finding was seen that nothing but the syntax shows."""
_DEEPEST = 4000
"""Frames for nested expressions: each level takes one or two."""


def inspecting() -> dict[str, type[Rule]]:
    """Return the rules that read the syntax, by id.

    >>> "clip-after-step" in inspecting()
    True
    """
    return {id: rule for id, rule in catalogue().items() if rule.reads_syntax()}


@dataclass(frozen=True, slots=True)
class Code:
    """The text of one file to check."""

    path: str
    text: str
    notebook: Notebook | None = None


def read_code(path: Path) -> Code | Problem:
    """Return the code of a file."""
    text = text_of(path)
    return text if isinstance(text, Problem) else code_of(str(path), text)


def code_of(path: str, text: str | bytes) -> Code | Problem:
    """Return the code of a text, which is a notebook if the path says so."""
    plain = decoded(path, text) if isinstance(text, bytes) else text
    if isinstance(plain, Problem) or not path.endswith(".ipynb"):
        return plain if isinstance(plain, Problem) else Code(path, plain)
    notebook = notebook_of(path, plain)
    return notebook if isinstance(notebook, Problem) else Code(path, notebook.text, notebook)


def inspect(code: Code, rules: Sequence[type[Rule]]) -> tuple[FileResults, tuple[str, ...]]:
    """Return the findings of some rules in one file, and the tracebacks of rules that failed."""
    path = code.path
    if not matters(code.text):
        return FileResults(path), ()
    program = _program(code)
    if isinstance(program, Problem):
        return FileResults(path, problems=(program,)), ()
    findings: list[Finding] = []
    errors: list[str] = []
    sites = _Sites(code, program)
    with _deep():
        for rule in rules:
            try:
                found = [_finding(rule, one, sites) for one in rule.inspect(program)]
            except Exception:
                errors.append(f"{rule.id} in {path}\n{traceback.format_exc()}")
                continue
            findings += found
    program.close()
    unique = {(one.rule, one.primary.site): one for one in reversed(findings)}
    return FileResults(path, tuple(sorted(unique.values(), key=_place))), tuple(errors)


def lint(text: str, path: str = "<text>", rules: Sequence[type[Rule]] | None = None) -> tuple[Finding, ...]:
    """Return the findings in a text, without those that its comments suppress.

    Args:
        text: Python code, or the JSON of a notebook if the path ends with ".ipynb".
        path: name of the file in the findings.
        rules: the rules to use; all by default.

    >>> body = "def forward(self, x):\\n        return torch.nn.functional.dropout(self.layer(x))"
    >>> [finding.rule for finding in lint(f"import torch\\nclass Net(torch.nn.Module):\\n    {body}")]
    ['functional-dropout-always-on']
    """
    code = code_of(path, text)
    if isinstance(code, Problem):
        return ()
    found, _ = inspect(code, tuple(inspecting().values()) if rules is None else rules)
    return tuple(one for one in suppressed(code, found.findings) if not one.suppressed)


def suppressed(code: Code, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return findings marked as suppressed where a comment of the file allows them."""
    if not has_comments(code.text):
        return findings
    file = source.SourceFile.from_text(code.path, code.text)
    marked = []
    for one in findings:
        site = one.primary.site
        line = 0 if site is None else _line(code, site)
        marked.append(replace(one, suppressed=True) if file.suppression(one.rule, line) is not None else one)
    return tuple(marked)


def complaints(code: Code) -> tuple[Problem, ...]:
    """Return the mistakes in the suppression comments of a file."""
    if not has_comments(code.text):
        return ()
    file = source.SourceFile.from_text(code.path, code.text)
    found = []
    for one in file.complaints(catalogue()):
        path, line = one.path, one.line
        if code.notebook is not None:
            cell, line = code.notebook.place(line)
            path = code.notebook.name(path, cell)
        found.append(Problem(path, one.message, line, fails=False))
    return tuple(found)


def show(code: Code) -> None:
    """Register the text of cells of a notebook, or of standard input, which reports cannot read from a path."""
    if code.notebook is None:
        source.overlay(code.path, code.text)
        return
    for cell, text in enumerate(code.notebook.sources):
        source.overlay(code.notebook.name(code.path, cell), text)


def _line(code: Code, site: Site) -> int:
    """Return the line in the text of the file of a site, which may be in a cell."""
    if code.notebook is None:
        return site.line
    names = [code.notebook.name(code.path, cell) for cell in range(len(code.notebook.numbers))]
    return code.notebook.starts[names.index(site.path)] + site.line - 1


def _program(code: Code) -> Program | Problem:
    try:
        with warnings.catch_warnings(), _deep():
            warnings.simplefilter("ignore")  # of invalid escapes in the user's strings
            return Program(code.text, ast.parse(code.text))
    except SyntaxError as error:
        line = error.lineno or 0
        if code.notebook is not None and line:
            cell, line = code.notebook.place(line)
            return Problem(code.notebook.name(code.path, cell), f"syntax error: {error.msg}", line)
        return Problem(code.path, f"syntax error: {error.msg}", line)
    except ValueError as error:
        return Problem(code.path, f"the file cannot be parsed: {error}")
    except (RecursionError, MemoryError):
        return Problem(code.path, "the code is nested too deeply to be checked")


@contextmanager
def _deep() -> Iterator[None]:
    """Allow deeper recursion than Python does by default."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Sites:
    """Turns nodes into sites, with the name of the function around them."""

    def __init__(self, code: Code, program: Program) -> None:
        self._code = code
        self._scopes = [scope for scope in program.scopes if scope.kind == "function"]

    def site(self, node: ast.AST) -> Site:
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", -1)
        last = getattr(node, "end_lineno", None) or line
        end = getattr(node, "end_col_offset", None)
        path = self._code.path
        function = self._function(line)
        if self._code.notebook is not None:
            cell, line_in_cell = self._code.notebook.place(line)
            path, last, line = self._code.notebook.name(path, cell), last - line + line_in_cell, line_in_cell
        return Site(path, line, column, last, -1 if end is None else end, function)

    def _function(self, line: int) -> str:
        around: Scope | None = None
        for scope in self._scopes:
            node = scope.node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (
                node.end_lineno or 0
            ):
                if around is None or node.lineno >= getattr(around.node, "lineno", 0):
                    around = scope
        return "<module>" if around is None else around.name


def _finding(rule: type[Rule], one: Suspicion, sites: _Sites) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        confidence=one.confidence,
        message=one.message,
        primary=Mark(sites.site(one.node), one.label),
        related=tuple(Mark(sites.site(node), label) for node, label in one.related),
        seen=IN_SYNTAX,
        help=one.help,
    )


def _place(finding: Finding) -> tuple[str, int, int, str]:
    site = finding.primary.site
    assert site is not None
    return site.path, site.line, site.column, finding.rule


def absolute(path: str) -> str:
    """Return a path that is independent of the working folder."""
    return os.path.abspath(path)
