"""Fixes: edits of a user's file that correct a finding, with its formatting and comments kept. Needs no torch.

proposal: requests, proposals and results
proposing: a fix for one failure
applying: several fixes in one file
catalogue: every fix by its rule
editing: the syntax of a file, and edits of it, with libcst
families: the fixes, one family per file

libcst is imported when the first fix is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from truestep.events import Site
from truestep.findings import Finding
from truestep.fixes.proposal import Proposal, Result, Wanted, diff

__all__ = ["Proposal", "Result", "Wanted", "apply_all", "diff", "propose", "propose_for"]


def propose(
    text: str,
    rule: str,
    site: Site,
    related: Sequence[Site] = (),
    *,
    message: str = "",
    label: str = "",
    help: str = "",
) -> Proposal | None:
    """Return a fix for a failure at a place of a file; None if no single edit is certain.

    Args:
        text: the file, with its line ends.
        rule: id of the rule.
        site: the faulty place; only places in its file are read.
        related: other places of the finding, in the order of the report.
        message: message of the finding, which can name objects of the script.
        label: text at the faulty place.
        help: its help.

    >>> fix = propose("logits = model.forward(x)", "forward-called-directly", Site("train.py", 1, 9))
    >>> fix.title, fix.new
    ('Call `model(...)` instead of `model.forward(...)`', 'logits = model(x)')
    """
    from truestep.fixes.proposing import proposed

    return proposed(text, Wanted(rule, site, tuple(related), message, label, help))


def propose_for(text: str, finding: Finding) -> Proposal | None:
    """Return a fix for a finding in the file of its primary site, as `propose` does; None without a site."""
    from truestep.fixes.proposing import proposed

    wanted = Wanted.of(finding)
    return None if wanted is None or finding.suppressed else proposed(text, wanted)


def apply_all(
    text: str,
    wanted: Iterable[Wanted | tuple[str, Site]],
    *,
    unsafe: bool = True,
    detect: Callable[[str], Iterable[Wanted]] | None = None,
) -> Result:
    """Fix several failures of a file, one after the other, until nothing changes.

    Places below a change move with their lines. If another fix changed the line of a failure, it is left for `detect`,
    or for another run.

    Args:
        text: the file, with its line ends.
        wanted: the failures, as pairs of a rule and a site or with more.
        unsafe: whether fixes that must be reviewed are made as well.
        detect: returns the failures that are left in a text, for further passes.

    >>> result = apply_all("y = m.forward(x)", [("forward-called-directly", Site("train.py", 1, 4))])
    >>> result.new, len(result.applied)
    ('y = m(x)', 1)
    """
    from truestep.fixes.applying import applied

    asked = [one if isinstance(one, Wanted) else Wanted(*one) for one in wanted]
    return applied(text, asked, unsafe=unsafe, detect=detect)
