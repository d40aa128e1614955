"""Fixes of findings in the syntax: made in the files, or shown as a diff."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from truestep.findings import Confidence, Finding, shown
from truestep.fixes.files import FileText
from truestep.lint import notebook_fixes
from truestep.lint.engine import Code, code_of, inspect, suppressed
from truestep.lint.results import Results
from truestep.report import fixes
from truestep.report.color import is_colored
from truestep.report.fixes import Offer
from truestep.rules import Rule


def offers(
    results: Results,
    rules: Sequence[type[Rule]],
    least: Confidence,
    *,
    unsafe: bool,
    once: bool = False,
    given: FileText | None = None,
) -> list[Offer]:
    """Return the fixes of the findings that are shown, by file.

    Args:
        results: the findings.
        rules: the rules that look again at a fixed text, for overlapping failures.
        least: least confidence of findings that are fixed.
        unsafe: whether fixes that must be reviewed are included.
        once: whether only these findings are fixed, as with a baseline, and the fixed text is not looked at again.
        given: the text of standard input, which is in no file.
    """
    again = None if once else _Again(rules, least)
    shown = results.shown(least)
    cells = [one for one in shown if notebook_fixes.of_notebook(one.primary.site)]
    others = [one for one in shown if one not in cells]
    return [
        *fixes.offers(others, unsafe=unsafe, detect=again, given=given),
        *notebook_fixes.offers(cells, unsafe=unsafe, detect=again, given=given),
    ]


class _Again:
    """The findings that are left in a fixed text."""

    def __init__(self, rules: Sequence[type[Rule]], least: Confidence) -> None:
        self._rules, self._least = rules, least

    def __call__(self, path: str, text: str) -> Iterable[Finding]:
        code = Code(path, text) if path.endswith(".ipynb") else code_of(path, text.encode())
        if not isinstance(code, Code):
            return ()
        found, _ = inspect(code, self._rules)
        return shown(suppressed(code, found.findings), least=self._least)


def show(found: Sequence[Offer]) -> None:
    """Write the fixes to standard output as a diff that `git apply` reads."""
    colour = is_colored(sys.stdout)
    text = "".join(fixes.colored(offer.result.diff(offer.path), colour) for offer in found)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))


def hidden(results: Results, *, unsafe: bool, least: Confidence) -> int:
    """Return the number of findings with a fix that must be reviewed, and is not asked for."""
    if unsafe:
        return 0
    shown = results.shown(least)
    proposals = [fixes.fix_of(finding) for finding in shown]
    for one in notebook_fixes.offers(shown, unsafe=True):
        proposals += one.result.applied
    return sum(fix is not None and not fix.safe for fix in proposals)


def counted(found: Sequence[Offer], done: str, hidden: int) -> str:
    """Return a line with the number of fixes; empty without any."""
    number = sum(len(offer.result.applied) for offer in found)
    said = []
    if number:
        inside = found[0].path if len(found) == 1 else f"{len(found)} files"
        said.append(f"{done}{number} {'fix' if number == 1 else 'fixes'} in {inside}")
    if hidden:
        said.append(f"{hidden} more to be reviewed, with --unsafe-fixes" if number else f"{hidden} with --unsafe-fixes")
    return f"truestep: {', '.join(said)}\n" if said else ""
