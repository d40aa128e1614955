"""The sheet as one JSON document, described by doctor.schema.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from truestep.doctor.advice.advice import Advice
from truestep.doctor.facts import Facts
from truestep.doctor.sheet import summary
from truestep.doctor.versions import checked

SCHEMA = "truestep.doctor/1"


def document(facts: Facts, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return facts and advice as plain values."""
    ready, sentence = summary(facts, advice)
    plain = asdict(facts)
    plain["variables"] = dict(facts.variables)
    return {
        "schema": SCHEMA,
        "truestep": plain.pop("truestep"),
        "checked": checked(),
        "ready": ready,
        "summary": sentence,
        "advice": [asdict(one) | {"level": one.level.value} for one in advice],
        "facts": plain,
    }
