"""The pytest plugin: supervises marked tests, tests that request the fixture `truestep`, or with --truestep all tests.

A supervised test is observed from its setup, where fixtures build models and optimizers, to the end of its call, and
fails if a silent failure was found. This module is imported by every pytest in an environment with TrueStep: it imports
pytest only, and registers an option, a marker and a fixture. Without these, it only looks at a test for the marker.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from truestep.config import Options
    from truestep.findings import Finding, Summary
    from truestep.supervision import Session

_MARKER = (
    "truestep(allow=(), select=(), confidence='medium', fail_on='warning', passive=False, supervise=True): "
    "supervise the training in this test, and fail it on a silent failure; `allow` and `select` are ids of rules."
)
_CHOICES: dict[str, tuple[object, ...]] = {
    "confidence": ("medium", "high"),
    "fail_on": ("error", "warning"),
    "passive": (True, False),
    "supervise": (True, False),
}
_RULES = ("allow", "select")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --truestep."""
    group = parser.getgroup("truestep", "silent training failures")
    group.addoption(
        "--truestep",
        action="store_true",
        help="Supervise all tests, and fail those with a silent training failure.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return the line about --truestep."""
    return ["truestep: all tests are supervised"] if config.getoption("--truestep") else []


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments of the marks of one test, and the configuration of the project."""

    options: Options
    confidence: str = "medium"
    fail_on: str = "warning"
    explicit: bool = True
    """Whether the test asks for supervision itself, by mark or fixture."""


class Watched:
    """A supervised test.

    Args:
        wanted: the requests of its marks.
        name: its node id.
    """

    def __init__(self, wanted: Wanted, name: str) -> None:
        from truestep.supervision.launching.first_import import FirstImport

        self.wanted = wanted
        self._name = name
        self._started: Session | None = None
        self._first_import = FirstImport("torch", lambda: self.session.start())

    @property
    def session(self) -> Session:
        """The session; made at its first use, so that a test without torch has none."""
        if self._started is None:
            from truestep.supervision import Session

            self._started = Session(self.wanted.options, script=self._name)
        return self._started

    def begin(self) -> None:
        """Start the session, or wait for the test to import torch."""
        self._first_import.install()

    def end(self, how: str, error: BaseException | None = None) -> Summary:
        """End the supervision; return its result."""
        from truestep.findings import Coverage, Summary

        self._first_import.remove()
        if self._started is None:
            return Summary(self._name, how, steps=0, coverage=Coverage(called=False, backward=False))
        if isinstance(error, Exception):
            self._started.examine(error)
        return self._started.stop(how)

    def counted(self, summary: Summary) -> list[Finding]:
        """Return the findings that fail the test."""
        from truestep.findings import Confidence

        grave = ("error",) if self.wanted.fail_on == "error" else ("error", "warning")
        found = summary.shown(least=Confidence(self.wanted.confidence))
        return [finding for finding in found if finding.severity in grave]


_WATCHED: pytest.StashKey[Watched | None] = pytest.StashKey()
_RESULT: pytest.StashKey[dict[str, str]] = pytest.StashKey()


@pytest.fixture
def truestep(request: pytest.FixtureRequest) -> Session:
    """The session that supervises this test; `findings` and `verdicts` are those until the last optimizer step.

    The test fails on a silent failure, as with the mark `truestep`.
    """
    item: pytest.Item = request.node
    watched = item.stash.get(_WATCHED, None)
    if watched is None:  # requested by `getfixturevalue`, or refused by the mark
        watched = item.stash[_WATCHED] = _started(item, asked=True)
    if watched is None:
        pytest.fail(
            _text(
                _bad(
                    "the fixture truestep is requested by a test that is marked with supervise=False",
                    "remove one of the two",
                )
            ),
            pytrace=False,
        )
    return watched.session


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the supervision of a test, before its fixtures; marks such as skip were evaluated before."""
    item.stash[_WATCHED] = None
    if _RESULT in item.stash:  # of an earlier run of the same test
        del item.stash[_RESULT]
    if _asked(item) or item.config.getoption("--truestep"):
        item.stash[_WATCHED] = _started(item, asked=_asked(item))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed and has findings; add the report to a test that failed."""
    watched = item.stash.get(_WATCHED, None)
    if watched is None:
        return (yield)
    try:
        result = yield
    except BaseException as error:
        _after_failure(item, watched, error)
        raise
    _judge(item, watched)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End the supervision of a test that failed in its setup."""
    watched = item.stash.get(_WATCHED, None)
    if watched is not None:
        watched.end("stopped")
        item.stash[_WATCHED] = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Put the result into the report of the test, which pytest-xdist sends to its main process."""
    report = yield
    if call.when == "call" and (result := item.stash.get(_RESULT, None)) is not None:
        report.truestep = result
        if text := result.pop("report"):
            report.sections.append(("truestep", text))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print one line of counts, and marked tests in which no optimizer step was observed."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    results = [(report.nodeid, report.truestep) for report in reports if hasattr(report, "truestep")]
    if not results:
        return
    failed = sum(result["findings"] != "0" for _, result in results)
    empty = [(id, result) for id, result in results if result["without_step"]]
    noun = "test" if len(results) == 1 else "tests"
    text = f"truestep: {len(results)} {noun} supervised, {failed} with findings"
    text += f", {len(empty)} without an optimizer step" if empty else ""
    terminalreporter.ensure_newline()
    terminalreporter.write_line(text, yellow=bool(failed or any(result["asked"] for _, result in empty)))
    for id, result in empty:
        if result["asked"]:
            terminalreporter.write_line(f"  {id}: {result['without_step']}")


# --- the supervision of one test -------------------------------------------------------------------------------------


def _asked(item: pytest.Item) -> bool:
    return item.get_closest_marker("truestep") is not None or "truestep" in getattr(item, "fixturenames", ())


def _started(item: pytest.Item, *, asked: bool) -> Watched | None:
    """Start the supervision of a test; return None if its mark refuses it."""
    from truestep.errors import TrueStepError

    try:
        wanted = _wanted(item, asked=asked)
        if wanted is None:
            return None
        watched = Watched(wanted, item.nodeid)
        watched.begin()
        return watched
    except TrueStepError as error:
        text = _text(error)
    pytest.fail(text, pytrace=False)


def _wanted(item: pytest.Item, *, asked: bool) -> Wanted | None:
    given: dict[str, Any] = {}
    allowed: tuple[str, ...] = ()
    for mark in item.iter_markers("truestep"):  # the closest first
        arguments = _checked(mark)
        allowed += arguments.pop("allow", ())
        given = arguments | given
    if not given.pop("supervise", True):
        return None
    options, fail_on = _configured(item.path.parent)
    options = replace(
        options,
        select=given.get("select", options.select),
        ignore=(*options.ignore, *allowed),
        active=options.active and not given.get("passive", False),
    )
    return Wanted(options, given.get("confidence", "medium"), given.get("fail_on", fail_on), asked)


@functools.cache
def _configured(folder: Path) -> tuple[Options, str]:
    """Return the options of the configuration that hold in a test, and its level of failing."""
    from truestep.config import Options, load_options
    from truestep.rules import rule

    read = load_options(folder)
    for id in (*read.select, *read.ignore):
        rule(id)
    fail_on = "error" if read.fail_on == "error" else "warning"
    return Options(select=read.select, ignore=read.ignore, budget=read.budget), fail_on


def _checked(mark: pytest.Mark) -> dict[str, Any]:
    """Return the arguments of a mark.

    Raises:
        BadConfiguration: an argument is unknown or invalid.
        UnknownRule: an id is not that of a rule.
    """
    import difflib

    from truestep.rules import rule

    known = (*_RULES, *_CHOICES)
    if mark.args:
        example = 'write names, such as @pytest.mark.truestep(allow=("eval-mode-missing",))'
        raise _bad(f"the mark truestep got the positional argument {mark.args[0]!r}", example)
    arguments: dict[str, Any] = {}
    for name, value in mark.kwargs.items():
        if name in _RULES:
            ids = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
            if not ids or not all(isinstance(id, str) for id in ids):
                raise _bad(
                    f"{name} of the mark truestep is {value!r}",
                    f'write ids, such as {name}=("eval-mode-missing",)',
                    "expected ids of rules",
                )
            for id in ids:
                rule(id)
            arguments[name] = ids
        elif name not in _CHOICES:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise _bad(
                f"the mark truestep has no argument {name}",
                f"write {near[0]}" if near else "remove it",
                f"expected one of {', '.join(known)}",
            )
        elif not any(value is choice or (value == choice and isinstance(value, str)) for choice in _CHOICES[name]):
            choices = " or ".join(repr(choice) for choice in _CHOICES[name])
            raise _bad(
                f"{name} of the mark truestep is {value!r}",
                "write one of these, or leave it out",
                f"expected {choices}",
            )
        else:
            arguments[name] = value
    return arguments


def _bad(happened: str, remedy: str, expected: str = "") -> Exception:
    from truestep.errors import BadConfiguration

    return BadConfiguration(happened, expected=expected, remedy=remedy)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _judge(item: pytest.Item, watched: Watched) -> None:
    """End the supervision of a test that passed, and fail it if it has findings."""
    __tracebackhide__ = True
    summary = watched.end("finished")
    counted = watched.counted(summary)
    _keep(item, watched, summary, counted, report=watched.wanted.explicit or bool(summary.shown()))
    if counted:
        pytest.fail("\n".join(_failure(counted)), pytrace=False)


def _after_failure(item: pytest.Item, watched: Watched, error: BaseException) -> None:
    """End the supervision of a test that ended by an exception, which stays its result."""
    outcome = isinstance(error, pytest.skip.Exception | pytest.xfail.Exception | SystemExit | pytest.exit.Exception)
    how = "interrupted" if isinstance(error, KeyboardInterrupt) else "exited" if outcome else "crashed"
    summary = watched.end(how, error)
    if not outcome:
        report = bool(summary.shown() or summary.post_mortem is not None)
        _keep(item, watched, summary, watched.counted(summary), report=report)
    item.stash[_WATCHED] = None


def _keep(item: pytest.Item, watched: Watched, summary: Summary, counted: list[Finding], *, report: bool) -> None:
    """Keep the result of a test for its report, as texts."""
    from truestep.report import coverage, render

    writer = item.config.get_terminal_writer()
    unstepped = not counted and coverage.extent(summary) in ("nothing", "little")
    item.stash[_WATCHED] = None
    item.stash[_RESULT] = {
        "findings": str(len(counted)),
        "without_step": coverage.limits(summary)[0].text if unstepped else "",
        "asked": "yes" if watched.wanted.explicit else "",
        "report": render(summary, width=writer.fullwidth, colour=writer.hasmarkup) if report else "",
    }


def _failure(counted: list[Finding]) -> Iterator[str]:
    """Yield the lines of the failure: its first line is that of pytest's short summary."""
    from truestep import source

    for finding in counted:
        site = finding.primary.site
        place = "" if site is None else f" {source.posix(source.displayed(site.path))}:{site.line}"
        yield f"{finding.severity.value}[{finding.rule}]{place}: {finding.message}"
    ids = "".join(f'"{rule}", ' for rule in dict.fromkeys(finding.rule for finding in counted))
    yield f"  allow it with @pytest.mark.truestep(allow=({ids.removesuffix(' ')})), if it is on purpose"
