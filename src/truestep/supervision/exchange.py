"""Conversion of a `Summary` to plain data and back, for rank 0 and for records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from truestep.errors import BadRecord
from truestep.events import Site
from truestep.findings import (
    Chance,
    Confidence,
    Coverage,
    Finding,
    LedgerLine,
    Mark,
    Outcome,
    PostMortem,
    Seen,
    Severity,
    Summary,
    Verdict,
)


def to_dict(summary: Summary) -> dict[str, Any]:
    """Return a summary in types of JSON: dicts, lists, strings and numbers. The timeline is left out."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(dataclasses.replace(summary, timeline=None))))
    return plain


def from_dict(data: Mapping[str, Any]) -> Summary:
    """Return the summary from the result of `to_dict`.

    Raises:
        BadRecord: a field is missing or invalid.

    >>> summary = Summary(script="train.py", how="finished", steps=3, missing_ranks=(1,))
    >>> from_dict(to_dict(summary)) == summary
    True
    """
    try:
        fields = dict(data)
        fields["findings"] = tuple(_finding(entry) for entry in fields["findings"])
        fields["verdicts"] = tuple(_verdict(entry) for entry in fields["verdicts"])
        for name in ("internal_errors", "missing_ranks"):
            fields[name] = tuple(fields[name])
        if fields.get("post_mortem") is not None:
            fields["post_mortem"] = post_mortem(fields["post_mortem"])
        fields["ledger"] = tuple(_ledger_line(entry) for entry in fields.get("ledger", ()))
        if "coverage" in fields:
            fields["coverage"] = _coverage(fields["coverage"])
        return Summary(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise BadRecord(
            "the summary of a run cannot be read",
            expected=f"{type(error).__name__}: {error}",
            remedy="record the run again with this version of truestep",
        ) from error


def _finding(data: Mapping[str, Any]) -> Finding:
    fields = dict(data)
    fields["severity"] = Severity(fields["severity"])
    fields["confidence"] = Confidence(fields["confidence"])
    fields["primary"] = _mark(fields["primary"])
    fields["related"] = tuple(_mark(entry) for entry in fields["related"])
    fields["seen"] = Seen(**fields["seen"])
    return Finding(**fields)


def post_mortem(data: Mapping[str, Any]) -> PostMortem:
    """Return the post-mortem from the result of `dataclasses.asdict`."""
    fields = dict(data)
    fields["primary"] = _mark(fields["primary"])
    fields["related"] = tuple(_mark(entry) for entry in fields["related"])
    fields["facts"] = tuple((str(key), str(text)) for key, text in fields["facts"])
    return PostMortem(**fields)


def _coverage(data: Mapping[str, Any]) -> Coverage:
    chance = data["chance"]
    return Coverage(**{**data, "started": _site(data["started"]), "chance": chance and Chance(**chance)})


def _ledger_line(data: Mapping[str, Any]) -> LedgerLine:
    return LedgerLine(**{**data, "rules": tuple(data["rules"])})


def _mark(data: Mapping[str, Any]) -> Mark:
    return Mark(_site(data["site"]), data["label"], data.get("of_remedy", False))


def _site(data: Mapping[str, Any] | None) -> Site | None:
    return None if data is None else Site(**data)


def _verdict(data: Mapping[str, Any]) -> Verdict:
    return Verdict(data["rule"], Outcome(data["outcome"]), data["reason"])
