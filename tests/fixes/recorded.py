"""Findings of the broken programs of proofs, recorded from supervised runs, so that fixes are tested without runs.

``python tests/fixes/recorded.py`` runs the programs again, and writes the file with the findings and the snapshots.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from truestep.events import Site
from truestep.fixes import Wanted
from truestep.fixes.applying import Moves
from truestep.fixes.proposing import proposed

HERE = Path(__file__).parent
PROOFS = HERE.parents[1] / "proofs"
FILE = HERE / "findings.json"
SNAPSHOTS = HERE / "snapshots"


def wanted() -> dict[str, Wanted]:
    """Return the finding of each proof with one that has a fix, such as "sum-overwritten/last-batch"."""
    return {proof: read(proof, entry) for proof, entry in json.loads(FILE.read_text(encoding="utf-8")).items()}


def read(proof: str, entry: dict[str, Any]) -> Wanted:
    path = str(PROOFS / proof / "bad.py")
    site, *related = (Site(path, *place) for place in entry["sites"])
    return Wanted(entry["rule"], site, tuple(related), entry["message"], entry["label"], entry["help"])


def program(proof: str) -> str:
    return (PROOFS / proof / "bad.py").read_text(encoding="utf-8")


def again(one: Wanted, old: str, new: str) -> Wanted | None:
    """Return the same failure in the fixed text: at its line, also if the fix changed it; None if the line is gone."""
    moved = Moves(old, new).wanted(one)
    lines = [number for number, line in enumerate(new.splitlines(), 1) if f"# error: {one.rule}" in line]
    if moved is None and lines:
        site = Site(one.site.path, lines[0], function=one.site.function)
        moved = Wanted(one.rule, site, (), one.message, one.label, one.help)
    return moved


def entry(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding of a report in JSON as an entry of the file."""
    marks = [finding["primary"], *finding["related"]]
    return {
        "rule": finding["rule"],
        "sites": [site(mark["site"]) for mark in marks if mark["site"] is not None],
        "message": finding["message"],
        "label": finding["primary"]["label"],
        "help": finding["help"] or "",
    }


def site(place: dict[str, Any]) -> list[Any]:
    """Return a place of a report in the numbers of `Site`; the programs of proofs are ASCII."""
    column, end_line, end_column = place["column"], place["end_line"], place["end_column"]
    known = column is not None and end_line is not None and end_column is not None
    numbers = [column - 1, end_line, end_column - 1] if known else [-1 if column is None else column - 1, -1, -1]
    return [place["line"], *numbers, place["function"]]


def main() -> None:
    sys.path.insert(0, str(HERE.parent / "support"))
    from programs import supervise

    chosen = sys.argv[1:] or sorted(path.parent.relative_to(PROOFS).as_posix() for path in PROOFS.glob("**/bad.py"))
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for proof in chosen:
        run = supervise(PROOFS / proof / "bad.py")
        rule = proof.partition("/")[0]
        for one in run.report["findings"]:
            if one["rule"] == rule and one["confidence"] != "low" and not one["explained_by"]:
                found[proof] = entry(one)
                break
    keep(found)


def keep(found: dict[str, Any]) -> None:
    """Write the findings that have a fix, and the snapshots of the fixes."""
    fixes = {proof: proposed(program(proof), read(proof, one)) for proof, one in found.items()}
    kept = {proof: found[proof] for proof, fix in sorted(fixes.items()) if fix is not None}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for path in SNAPSHOTS.glob("*.diff"):
        path.unlink()
    for proof, fix in fixes.items():
        if fix is not None:
            snapshot(proof).write_text(text(fix), encoding="utf-8")


def snapshot(proof: str) -> Path:
    return SNAPSHOTS / f"{proof.replace('/', '-')}.diff"


def text(fix: Any) -> str:
    return f"{'safe' if fix.safe else 'to be reviewed'}: {fix.title}\n{fix.diff('bad.py')}"


if __name__ == "__main__":
    main()
