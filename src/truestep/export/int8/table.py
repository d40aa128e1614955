"""Metric, latency and size before and after quantisation, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truestep.export.int8.scores import ERROR


def cells(found: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the table, the heads first.

    Args:
        found: the entry "quantisation" of `config.json`.
    """
    metric, timed = found["metric"], found["latency"]
    rows = [["", metric["name"], *(_samples(one["batch"]) for one in timed), "size"]]
    for name, key in ((found["from"], "before"), (found["kind"], "after")):
        score = f"{metric[key]:.4f}" if metric["name"] != ERROR else f"{metric[key]:.5g}"
        rows.append([name, score, *(_time(one[f"{key}_s"]) for one in timed), _size(found["bytes"][key])])
    return rows


def table(found: Mapping[str, Any]) -> list[str]:
    """Return the table as lines of text."""
    rows = cells(found)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def verdict(found: Mapping[str, Any]) -> str:
    """Return a sentence on the metric, the speed and the size.

    Example:
        >>> verdict({"metric": {"name": "accuracy", "drop": 0.001, "most_drop": 0.01},
        ...          "bytes": {"before": 400, "after": 100},
        ...          "latency": [{"batch": 64, "before_s": 0.2, "after_s": 0.1}]})
        'accuracy fell by 0.001 (at most 0.01); 2x as fast with 64 samples; 0.25x the size'
    """
    metric, size = found["metric"], found["bytes"]
    if metric["name"] == ERROR:
        verb, drop, most = "rose", f"{metric['drop']:.2%}", f"{metric['most_drop']:.2%}"
    else:
        verb, drop, most = "fell", f"{metric['drop']:.4g}", f"{metric['most_drop']:.4g}"
    said = f"{verb} by {drop} (at most {most})" if metric["drop"] > 0 else f"did not {_PRESENT[verb]}"
    speed = [
        f"{one['before_s'] / one['after_s']:.2g}x as fast with {_samples(one['batch'])}" for one in found["latency"]
    ]
    return "; ".join((f"{metric['name']} {said}", *speed, f"{size['after'] / size['before']:.2g}x the size"))


_PRESENT = {"fell": "fall", "rose": "rise"}


def _samples(count: int) -> str:
    return f"{count} {'sample' if count == 1 else 'samples'}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def _size(count: int) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"
