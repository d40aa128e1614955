"""Values that the shell completes: ids of rules, speed-ups, templates, exercises, folders of runs. Without torch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_SWITCH = "_TRUESTEP_COMPLETE"
"""Variable by which the script of the shell asks for completions."""
_FOLDERS = 500
"""Most folders to look into, the nearest first: the answer must come while the user waits."""


def words(environment: Mapping[str, str]) -> list[str] | None:
    """Return the words of the command line to complete, without ``truestep``; None without a request for completion.

    >>> words({"_TRUESTEP_COMPLETE": "complete_bash", "COMP_WORDS": "truestep explain mi", "COMP_CWORD": "2"})
    ['explain', 'mi']
    >>> words({}) is None
    True
    """
    if _SWITCH not in environment:
        return None
    return (environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS", "")).split()[1:]


def pages(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids that ``truestep explain`` knows: rules, then kinds of post-mortems."""
    from truestep.postmortem.catalogue import POST_MORTEMS

    return _rules(incomplete, notices=True) + [
        (slug, kind.error) for slug, kind in POST_MORTEMS.items() if slug.startswith(incomplete)
    ]


def rules(incomplete: str) -> list[tuple[str, str]]:
    """Return ids of rules for a list with commas, of which the last one is completed."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{id}", title) for id, title in _rules(last)]


def lint_rules(incomplete: str) -> list[tuple[str, str]]:
    """Return ids of rules that read the syntax, for a list with commas, of which the last one is completed."""
    from truestep.lint.engine import inspecting

    before, comma, last = incomplete.rpartition(",")
    known = inspecting()
    return [(f"{before}{comma}{id}", title) for id, title in _rules(last, notices=True) if id in known]


def with_remedy(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of rules with a remedy, which ``truestep prove`` can apply."""
    from truestep.experiments.changes import REMEDIES

    return [(id, title) for id, title in _rules(incomplete) if id in REMEDIES]


def speedups(incomplete: str) -> list[tuple[str, str]]:
    """Return names of speed-ups for a list with commas, of which the last one is completed."""
    from truestep.experiments.changes.speedups import SPEEDUPS

    before, comma, last = incomplete.rpartition(",")
    names = {name: kind.summary for name, kind in SPEEDUPS.items() if name != "nothing"}
    return [(f"{before}{comma}{name}", about) for name, about in names.items() if name.startswith(last)]


def templates(incomplete: str) -> list[tuple[str, str]]:
    """Return the names of the programs that ``truestep new`` writes."""
    from truestep.templates import ORDER, title

    return [(name, title(name)) for name in ORDER if name.startswith(incomplete)]


def exercises(incomplete: str) -> list[tuple[str, str]]:
    """Return the names of exercises."""
    from truestep.exercises.catalogue import exercises

    return [(name, one.title) for name, one in exercises().items() if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Return the folders of runs and records below the folder that was written so far."""
    return list(_folders(incomplete, ("run", "record")))


def records(incomplete: str) -> list[str]:
    """Return the records of ``truestep run --record`` below the folder that was written so far."""
    return list(_folders(incomplete, ("record",)))


def _rules(incomplete: str, *, notices: bool = False) -> list[tuple[str, str]]:
    from truestep.rules import all_rules, catalogue
    from truestep.rules._page import parse

    found = {id: rule for id, rule in (catalogue() if notices else all_rules()).items() if id.startswith(incomplete)}
    return [(id, parse(rule.__doc__ or "").title) for id, rule in found.items()]


def _folders(incomplete: str, kinds: Sequence[str]) -> Iterator[str]:
    """Yield the paths of runs that begin with a text; none is found where the shell completes files."""
    from truestep.runs.folders import kind_of

    start = incomplete.rpartition("/")[0] + "/" if "/" in incomplete else ""
    waiting = deque([start])
    for _ in range(_FOLDERS):
        if not waiting:
            return
        above = waiting.popleft()
        for name in _inner(Path(above).expanduser()):
            path = f"{above}{name}"
            if not path.startswith(incomplete):
                continue
            kind = kind_of(Path(path).expanduser())
            if kind in kinds:
                yield path
            elif not kind:
                waiting.append(f"{path}/")


def _inner(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in found if not name.startswith((".", "__")))
