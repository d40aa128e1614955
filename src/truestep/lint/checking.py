"""Many files: read, checked or taken from the cache, with the options of the user applied."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pathspec import GitIgnoreSpec

from truestep.findings import Finding
from truestep.lint.cache import Cache
from truestep.lint.engine import Code, complaints, inspect, show, suppressed
from truestep.lint.results import FileResults, Problem, Results
from truestep.rules import Rule


def check(
    codes: Iterable[Code | Problem],
    rules: Sequence[type[Rule]],
    cache: Cache | None = None,
    ignores: Mapping[str, Sequence[str]] | None = None,
    base: Path | None = None,
) -> Results:
    """Return the findings in many files.

    Args:
        codes: the files, or the reasons that they cannot be checked.
        rules: the rules to use.
        cache: results of earlier checks.
        ignores: rules that are ignored in the files of a pattern, in the form of `.gitignore`.
        base: folder that the patterns are relative to.
    """
    ignored = _PerFile(ignores or {}, base or Path.cwd())
    files = 0
    findings: list[Finding] = []
    problems: list[Problem] = []
    errors: list[str] = []
    with _seldom_collected():
        for code in codes:
            files += 1
            if isinstance(code, Problem):
                problems.append(code)
                continue
            found, failed = _checked(code, rules, cache)
            errors += failed
            if found.findings and code.notebook is not None:
                show(code)
            problems += (*found.problems, *complaints(code))
            findings += (
                replace(one, suppressed=True) if ignored(one) else one for one in suppressed(code, found.findings)
            )
    if cache is not None:
        cache.write()
    return Results(files, tuple(findings), tuple(problems), internal_errors=tuple(errors))


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let the collector of cycles run less often: a tree has many objects, and each model is closed after its use."""
    before = gc.get_threshold()
    gc.set_threshold(500_000, before[1], 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _checked(code: Code, rules: Sequence[type[Rule]], cache: Cache | None) -> tuple[FileResults, tuple[str, ...]]:
    known = None if cache is None else cache.get(code.path, code.text)
    if known is not None:
        return known, ()
    found, failed = inspect(code, rules)
    if cache is not None and not failed:
        cache.put(code.text, found)
    return found, failed


class _PerFile:
    """Rules that the configuration ignores in some files."""

    def __init__(self, ignores: Mapping[str, Sequence[str]], base: Path) -> None:
        self._base = base.absolute()
        self._specs = [(GitIgnoreSpec.from_lines([pattern]), frozenset(rules)) for pattern, rules in ignores.items()]

    def __call__(self, finding: Finding) -> bool:
        site = finding.primary.site
        if site is None or not self._specs:
            return False
        path = Path(site.path.partition(":cell ")[0]).absolute()
        try:
            relative = path.relative_to(self._base).as_posix()
        except ValueError:
            relative = path.as_posix().lstrip("/")
        return any(finding.rule in rules and spec.match_file(relative) for spec, rules in self._specs)
