"""The report of `truestep overfit`: text and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from truestep.experiments.overfit.overfit import LearningVerdict, Overfit
from truestep.experiments.reports.curve import drawn


def text(result: Overfit) -> str:
    """Return the result as text: the curve, the verdict, findings and causes."""
    finite = [loss for loss in result.losses if math.isfinite(loss)]
    parts = ["\n".join(drawn(finite))] if len(finite) > 1 else []
    parts.append("\n".join(wrap(result.sentence, 80)))
    if result.plain is not None and result.plain.findings:
        parts.append(f"findings of truestep run:\n\n{result.plain.report.rstrip()}")
    parts += ["\n".join(wrap(f"why: {cause}", 80, subsequent_indent="     ")) for cause in result.causes]
    if result.plain is not None and not result.plain.findings and not result.causes:
        hint = (
            ""
            if result.answer is LearningVerdict.FALLS
            else ": look at the learning rate, the labels and the model's size"
        )
        parts.append("\n".join(wrap(f"truestep run finds no failure in it{hint}", 80)))
    return "\n\n".join(parts)


def document(result: Overfit) -> dict[str, object]:
    """Return the result as values for JSON."""
    return {
        "answer": str(result.answer),
        "sentence": result.sentence,
        "losses": [loss if math.isfinite(loss) else str(loss) for loss in result.losses],
        "how": result.outcome.how,
        "seconds": round(result.outcome.seconds, 3),
        "changes": {name: dict(counts) for name, counts in result.outcome.changes.items()},
        "causes": list(result.causes),
        "report": result.plain.report if result.plain is not None else "",
    }


def until(losses: Sequence[float]) -> str:
    """Return the conclusion about a run that was interrupted."""
    if not losses:
        return "cannot tell: interrupted before the first step"
    return f"cannot tell: interrupted after {len(losses)} steps; the loss went from {losses[0]:.4g} to {losses[-1]:.4g}"
