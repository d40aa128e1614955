"""A user's source file: its lines, as reports show them, and its suppression comments.

A comment ``# truestep: ignore[rule-id, other-id] reason`` allows these rules in its statement (on any line of it) or,
alone on its line, in the statement below. ``# truestep: ignore-file[rule-id] reason`` allows them in the whole file.
"""

from __future__ import annotations

import ast
import difflib
import functools
import io
import linecache
import os
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from truestep.events import Site
from truestep.findings import Finding

_LONGEST = 20_000
"""Largest number of lines of a file to parse."""
_TREES = 8
"""Number of trees to keep: several MB per thousand lines."""
_WALKED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While)
LABELS: list[Callable[[str], str | None]] = []
"""Functions that return a name for code without a file, such as a cell of a notebook; None for other code."""
_overlays: dict[str, SourceFile] = {}
"""Texts that `read` returns for a path instead of the file: unsaved ones, and cells of notebooks."""
_latest: dict[str, tuple[list[str], ast.Module | None]] = {}
"""The lines and the tree of each file that was parsed last."""
_COMMENT = re.compile(r"#\s*truestep:\s*(?P<rest>.*)", re.IGNORECASE)
_IGNORE = re.compile(r"ignore(?P<file>-file)?\s*\[(?P<rules>[^\]]*)\](?P<reason>.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment that allows some rules on some lines."""

    line: int
    """Line of the comment."""
    first: int
    last: int
    """First and last line that it covers, both included."""
    rules: tuple[str, ...]
    reason: str = ""
    whole_file: bool = False

    def covers(self, rule: str, line: int) -> bool:
        return rule in self.rules and (self.whole_file or self.first <= line <= self.last)


@dataclass(frozen=True, slots=True)
class Complaint:
    """A problem with a suppression comment; the message is lower case, without a full stop."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of a user's file. A missing file has no lines, and all methods still work."""

    path: str
    lines: tuple[str, ...] = ()
    """Without line ends; ``lines[0]`` is line 1."""
    suppressions: tuple[Suppression, ...] = ()
    malformed: tuple[int, ...] = ()
    """Lines with a ``# truestep:`` comment in an unknown form."""

    @classmethod
    def from_text(cls, path: str, text: str) -> SourceFile:
        """Return a file with a text from memory.

        >>> file = SourceFile.from_text("train.py", "opt.step()  # truestep: ignore[missing-zero-grad] on purpose")
        >>> file.suppressions[0].rules, file.suppressions[0].reason
        (('missing-zero-grad',), 'on purpose')
        """
        lines = tuple(line.rstrip("\r\n") for line in io.StringIO(text))
        suppressions, malformed = _suppressions(text, lines) if "truestep:" in text.lower() else ((), ())
        return cls(path, lines, suppressions, malformed)

    def line(self, number: int) -> str | None:
        """Return a line by its number, counted from 1; None for a number out of range."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else None

    def character(self, number: int, column: int) -> int:
        """Return the column in characters for a column of Python (bytes of UTF-8); both count from 0."""
        text = self.line(number)
        if text is None or column < 0 or text.isascii():
            return column
        return len(text.encode("utf-8")[:column].decode("utf-8", errors="replace"))

    def suppression(self, rule: str, line: int) -> Suppression | None:
        """Return the comment that allows this rule on this line."""
        return next((s for s in self.suppressions if s.covers(rule, line)), None)

    def complaints(self, known: Collection[str]) -> list[Complaint]:
        """Return the problems with the suppression comments in this file, sorted by line.

        Args:
            known: ids of all rules.

        >>> file = SourceFile.from_text("train.py", "opt.step()  # truestep: ignore[mising-zero-grad]")
        >>> print(*file.complaints(["missing-zero-grad", "graph-cut"]))
        train.py:1: no rule is called "mising-zero-grad" (nearest: missing-zero-grad)
        """
        found = [
            Complaint(self.path, line, "the comment allows nothing: write `# truestep: ignore[rule-id] reason`")
            for line in self.malformed
        ]
        for suppression in self.suppressions:
            for rule in suppression.rules:
                if rule not in known:
                    near = difflib.get_close_matches(rule, sorted(known), n=3, cutoff=0.75)
                    hint = f" (nearest: {', '.join(near)})" if near else ""
                    found.append(Complaint(self.path, suppression.line, f'no rule is called "{rule}"{hint}'))
        return sorted(found, key=lambda complaint: complaint.line)


def read(path: str | os.PathLike[str]) -> SourceFile:
    """Return a user's file, decoded as it declares; a missing or unreadable one has no lines.

    Notebook cells and other code without a file come from `linecache`, as in tracebacks. The text is cached until the
    file changes.
    """
    name = os.fspath(path)
    if name in _overlays:
        return _overlays[name]
    try:
        status = os.stat(name)
        return _read(name, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        lines = linecache.getlines(name)
        return SourceFile.from_text(name, "".join(lines)) if lines else SourceFile(name)


def overlay(path: str, text: str | None) -> None:
    """Let `read` return a text for a path, instead of the file; None ends that."""
    if text is None:
        _overlays.pop(path, None)
    else:
        _overlays[path] = SourceFile.from_text(path, text)


def parsed(path: str) -> ast.Module | None:
    """Return the syntax of a user's file; None if it is missing, too long or not Python.

    The lines are those of `linecache`, as in tracebacks. Trees are shared and must not be modified.
    """
    try:
        lines = linecache.getlines(path)
    except ValueError:
        return None
    held = _latest.get(path)
    if held is None or held[0] is not lines:  # the cache of lines has another list for another text
        tree = _parsed("".join(lines)) if 0 < len(lines) <= _LONGEST else None
        if len(_latest) >= _TREES:
            _latest.clear()
        held = _latest[path] = lines, tree
    return held[1]


def walk(node: ast.AST) -> Iterable[ast.AST]:
    """Return a node and all nodes below it, in the order of `ast.walk`.

    Those of a file, a function or a loop are kept, since many readers ask for them.
    """
    return _nodes(node) if isinstance(node, _WALKED) else ast.walk(node)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a file or a function, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from own_nodes(node)


@functools.lru_cache(maxsize=64)
def _nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(node))


@functools.lru_cache(maxsize=4)
def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return the node around each node of a file; only its own nodes are keys, not equal ones of an earlier reading."""
    return {child: node for node in walk(tree) for child in ast.iter_child_nodes(node)}


@functools.lru_cache(maxsize=_TREES)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return None


def suppressed(finding: Finding) -> bool:
    """Return True if a comment in the user's code allows this finding on its primary line."""
    return suppression(finding) is not None


def suppression(finding: Finding) -> Suppression | None:
    """Return the comment that allows this finding, or None."""
    site = finding.primary.site
    return None if site is None else read(site.path).suppression(finding.rule, site.line)


def displayed(path: str, *, base: Path | None = None) -> str:
    """Return a path as reports show it: relative if it is below the base, unchanged otherwise.

    Args:
        path: a path, or the name of code without a file, which may have a label.
        base: a folder; default: the working directory.
    """
    for label in LABELS:
        if (name := label(path)) is not None:
            return name
    if not os.path.isabs(path):
        return path
    try:
        return str(Path(path).relative_to(base or Path.cwd()))
    except (ValueError, OSError):
        return path


def posix(path: str) -> str:
    """Return a path with forward slashes, as URIs and other tools need it."""
    return path.replace(os.sep, "/")


@dataclass(frozen=True, slots=True)
class Span:
    """A site for people and other tools: lines and columns count from 1, in characters; None if unknown."""

    path: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    """One after the last character."""
    text: str | None
    """The first line of the expression, as in the file."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}"
        return place if self.column is None else f"{place}:{self.column}"


def span(site: Site) -> Span:
    """Return a site as a `Span`, in the units that reports use."""
    file = read(site.path)
    text = file.line(site.line)
    column = file.character(site.line, site.column) + 1 if site.column >= 0 else None
    end_line = site.end_line if site.end_line >= site.line else None
    end_column = None
    if column is not None and site.end_column >= 0:
        last = end_line or site.line
        end_column = file.character(last, site.end_column) + 1
        if last == site.line and end_column <= column:
            end_column = None
    return Span(displayed(site.path), site.line, column, end_line, end_column, text)


@functools.lru_cache(maxsize=256)
def _read(path: str, stamp: int, size: int) -> SourceFile:
    try:
        with tokenize.open(path) as stream:
            text = stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return SourceFile(path)
    return SourceFile.from_text(path, text)


def _suppressions(text: str, lines: tuple[str, ...]) -> tuple[tuple[Suppression, ...], tuple[int, ...]]:
    found: list[Suppression] = []
    malformed: list[int] = []
    for line, comment, first, last in _comments(text, lines):
        said = _COMMENT.search(comment)
        if said is None:
            continue
        match = _IGNORE.match(said["rest"])
        rules = tuple(part.strip() for part in match["rules"].split(",") if part.strip()) if match else ()
        if match is None or not rules:
            malformed.append(line)
            continue
        reason = match["reason"].strip()
        found.append(Suppression(line, first, last, rules, reason, whole_file=match["file"] is not None))
    return tuple(found), tuple(malformed)


def _comments(text: str, lines: tuple[str, ...]) -> Iterator[tuple[int, str, int, int]]:
    """Yield every comment with its line, its text, and the first and last line of its statement."""
    try:
        yield from _tokenized(list(tokenize.generate_tokens(io.StringIO(text).readline)))
    except (tokenize.TokenError, SyntaxError):
        # A cell with magics or an incomplete file: each comment then belongs to its own line.
        for number, line in enumerate(lines, start=1):
            if "#" in line:
                yield number, line[line.index("#") :], number, number


def _tokenized(tokens: list[tokenize.TokenInfo]) -> list[tuple[int, str, int, int]]:
    silent = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    found: list[tuple[int, str, int, int]] = []
    pending: list[tuple[int, str]] = []
    first = None
    for token in tokens:
        if token.type == tokenize.COMMENT:
            pending.append((token.start[0], token.string))
        elif token.type == tokenize.NEWLINE:
            found.extend((line, comment, first or token.start[0], token.start[0]) for line, comment in pending)
            pending, first = [], None
        elif token.type not in silent and first is None:
            first = token.start[0]
            # Comments alone on the lines above cover the statement only if no other line is between.
            pending = _adjacent(pending, first, found)
    found.extend((line, comment, line, line) for line, comment in pending)
    return sorted(found)


def _adjacent(
    pending: list[tuple[int, str]], first: int, found: list[tuple[int, str, int, int]]
) -> list[tuple[int, str]]:
    kept: list[tuple[int, str]] = []
    expected = first - 1
    for line, comment in reversed(pending):
        if line == expected:
            kept.append((line, comment))
            expected -= 1
        else:
            found.append((line, comment, line, line))
    return kept[::-1]
