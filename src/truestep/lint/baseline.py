"""A baseline: findings that were accepted at one time, so that only new ones are shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from truestep import source
from truestep.errors import BadBaseline, UnwritableFolder
from truestep.findings import Finding

FORMAT = "truestep.baseline/1"
Entry = tuple[str, str, str, str]
"""Rule, file, function and line of code of a finding: it stays the same when other lines are added or removed."""


def read(path: Path) -> Counter[Entry]:
    """Return the entries of a baseline, with their numbers.

    Raises:
        BadBaseline: the file is missing or has another format.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        return Counter(
            {
                (one["rule"], one["file"], one["function"], one["code"]): int(one["count"])
                for one in document["findings"]
            }
        )
    except FileNotFoundError:
        raise BadBaseline(
            f"the baseline {path} does not exist", remedy="write it with `truestep lint --write-baseline FILE PATHS`"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadBaseline(
            f"{path} is not a baseline",
            expected=f"expected JSON of {FORMAT}, got: {error}",
            remedy="write it again with `truestep lint --write-baseline FILE PATHS`",
        ) from None


def write(path: Path, findings: Iterable[Finding]) -> int:
    """Write a baseline with these findings, and return their number.

    Raises:
        UnwritableFolder: the file cannot be written.
    """
    counts = Counter(entry(one, path) for one in findings)
    listed = [
        {"rule": rule, "file": file, "function": function, "code": code, "count": count}
        for (rule, file, function, code), count in sorted(counts.items())
    ]
    text = json.dumps({"format": FORMAT, "findings": listed}, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnwritableFolder(
            f"the baseline cannot be written to {path}", expected=str(error), remedy="name another file"
        ) from error
    return sum(counts.values())


def unlisted(findings: Iterable[Finding], path: Path) -> tuple[tuple[Finding, ...], int]:
    """Return the findings that a baseline does not list, and the number of those that it lists."""
    left = read(path)
    found, listed = [], 0
    for one in findings:
        key = entry(one, path)
        if left[key] > 0:
            left[key] -= 1
            listed += 1
        else:
            found.append(one)
    return tuple(found), listed


def entry(finding: Finding, path: Path) -> Entry:
    """Return the entry of a finding in a baseline at a path."""
    site = finding.primary.site
    if site is None:
        return finding.rule, "", "", ""
    file = source.posix(source.displayed(str(Path(site.path).absolute()), base=path.absolute().parent))
    code = source.read(site.path).line(site.line) or ""
    return finding.rule, file, site.function, " ".join(code.split())
