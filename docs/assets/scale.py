"""Write the tables of `explanation/scale.md` and `reference/plan.md`, and draw the strategies.

    python docs/assets/scale.py

A table stands between the comments `<!-- table: NAME -->` and `<!-- end -->` of a page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from truestep.experiments.plan.fitting import size
from truestep.experiments.plan.footprint import Footprint, Moment, Needs, Strategy, footprint
from truestep.experiments.plan.scale import (
    LINKS,
    STATE_VALUES,
    all_reduce_bytes,
    checkpoint_bytes,
    exposed_for,
    exposed_s,
    fsdp_bytes,
    save_interval_s,
    sharded_bytes,
    speedup,
    state_bytes,
    tokens_to_hide,
    training_bytes,
)

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "explanation" / "scale.md", DOCS / "reference" / "plan.md")
COUNTS = (8, 64, 1024)
MODELS = {"350 million": 350e6, "7 billion": 7e9, "70 billion": 70e9}
FLOPS = 400e12
"""Operations per second of an H100 in training: 40 % of the 989e12 of its data sheet for dense bf16."""
FAILURE_HOURS = 54 * 24 / 419 * 16_384
"""Hours of one GPU between two failures: 419 unexpected interruptions of 16,384 GPUs in 54 days (Llama 3)."""
WRITE = 5e9
"""Bytes per second that a storage takes from all devices together."""


def rows_of(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seconds(value: float) -> str:
    """Return a time in two or three digits.

    >>> [seconds(value) for value in (0.0035, 0.25, 1.47, 84, 5400)]
    ['3.5 ms', '250 ms', '1.5 s', '84 s', '1.5 h']
    """
    if value >= 3600:
        return f"{value / 3600:.2g} h"
    if value >= 90:
        return f"{value / 60:.2g} min"
    if value >= 1:
        return f"{value:.2g} s"
    return f"{1000 * value:.2g} ms" if value < 0.0995 else f"{1000 * value:.3g} ms"


def per_parameter() -> str:
    """Return the bytes of a parameter, its gradient and its state."""
    head = ["optimizer of torch", "parameters in fp32", "of which state", "parameters in bf16", "of which state"]
    return rows_of(
        head,
        [
            [name, *(f"{f(1, name, kind):g}" for kind in ("fp32", "bf16") for f in (training_bytes, state_bytes))]
            for name in STATE_VALUES
        ],
    )


def memory() -> str:
    """Return the bytes of parameters, gradients and state on each device."""
    head = ["parameters", "one device", "DDP, with buckets", *(f"FSDP2 on {count}" for count in COUNTS)]
    rows = [
        [
            name,
            size(training_bytes(count)),
            size(training_bytes(count) + 4 * count),
            *(size(sharded_bytes(count, devices)) for devices in COUNTS),
        ]
        for name, count in MODELS.items()
    ]
    return rows_of(head, rows)


def sent() -> str:
    """Return the bytes that each device sends in a step."""
    head = ["parameters", *(f"{kind} on {count}" for kind in ("DDP", "FSDP2") for count in COUNTS)]
    rows = [
        [
            name,
            *(size(all_reduce_bytes(4 * count, devices)) for devices in COUNTS),
            *(size(fsdp_bytes(2 * count, devices)) for devices in COUNTS),
        ]
        for name, count in MODELS.items()
    ]
    return rows_of(head, rows)


def links() -> str:
    """Return the time of the exchange of 7 billion parameters by link, and the tokens that hide it."""
    head = ["link", "GB/s", "DDP", "FSDP2", "DDP hidden from", "FSDP2 hidden from"]
    devices = 64
    ddp, fsdp = all_reduce_bytes(4 * 7e9, devices), fsdp_bytes(2 * 7e9, devices)
    rows = []
    for link in LINKS:
        rate = link.bytes_per_second
        # Only the backward pass, two thirds of the computation, hides an all-reduce.
        tokens = (1.5 * tokens_to_hide(ddp / 7e9, FLOPS, rate), tokens_to_hide(fsdp / 7e9, FLOPS, rate))
        times = [seconds(ddp / rate), seconds(fsdp / rate)]
        rows.append([link.name, f"{rate / 1e9:g}", *times, *(f"{count:,.0f} tokens" for count in tokens)])
    return rows_of(head, rows)


def sources() -> str:
    """Return the list of links with their sources."""
    return "\n".join(f"- {link.name}: {link.source}" for link in LINKS)


def checkpoints() -> str:
    """Return the sizes of checkpoints, the time to write them, and the interval that loses least."""
    head = ["parameters", "checkpoint", "written in", *(f"every, on {count}" for count in COUNTS)]
    rows = []
    for name, count in MODELS.items():
        written = checkpoint_bytes(count) / WRITE
        every = [save_interval_s(written, 3600 * FAILURE_HOURS / devices) for devices in COUNTS]
        rows.append([name, size(checkpoint_bytes(count)), seconds(written), *map(seconds, every)])
    return rows_of(head, rows)


def example() -> str:
    """Return the figures of a common example, and those of the formulae."""
    gradients, step, gained, devices = 4 * 350e6, 0.080, 3.7, 4
    naive, ring = gradients / 600e9, all_reduce_bytes(gradients, devices) / 600e9
    one_way = all_reduce_bytes(gradients, devices) / 300e9
    last = all_reduce_bytes(25e6, devices) / 300e9
    lost = exposed_for(devices, step, gained)
    hidden = exposed_s(one_way, 2 / 3 * step, last)
    return "\n".join(
        [
            "| statement | formula | result |",
            "| --- | --- | --- |",
            f"| 7B, Adam: 56 GB of state | 2 x 4 bytes | {size(state_bytes(7e9))} |",
            f"| 7B, AdamW in fp32: 112 GB in all | 16 bytes | {size(training_bytes(7e9))}, without activations |",
            f"| 350M: gradients of 1.4 GB | 4 bytes | {size(gradients)} |",
            f"| sent at 600 GB/s: 2.3 ms | size / rate | {seconds(naive)} |",
            f"| with the factor of the ring: 3.5 ms | 2(N-1)/N | {seconds(ring)} |",
            f"| ... in one direction of NVLink 3 | 300 GB/s | {seconds(one_way)} |",
            f"| 3.7 times on four, steps of 80 ms | time lost per step | {seconds(lost)} |",
            f"| ... if nothing overlaps, at 600 GB/s | N t / (t + lost) | {speedup(devices, step, ring):.2f} |",
            f"| ... if nothing overlaps, at 300 GB/s | N t / (t + lost) | {speedup(devices, step, one_way):.2f} |",
            f"| ... if all but the last bucket overlaps | N t / (t + lost) | {speedup(devices, step, hidden):.2f} |",
        ]
    )


def accuracy() -> str:
    """Return the errors of the plans of `bench/plan.py`."""
    saved = json.loads((DOCS.parent / "bench" / "results" / "plan.json").read_text(encoding="utf-8"))
    rows = []
    for row in saved["rows"]:
        name = f"{row['strategy']} on {row['devices']}" if row["strategy"] == "FSDP2" else row["strategy"]
        errors = [f"{100 * row[key] + 0.0:+.1f} %" for key in ("script_error", "factory_error")]
        rows.append([f"{row['model']}, {name}", f"{row['measured_mb']:g} MB", *errors])
    return rows_of(["model and strategy", "measured peak", "plan of the script", "plan of the factory"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "per-parameter": per_parameter,
    "memory": memory,
    "sent": sent,
    "links": links,
    "sources": sources,
    "checkpoints": checkpoints,
    "example": example,
    "accuracy": accuracy,
}


def filled(page: str) -> str:
    """Return a page with its tables, each between its comments."""

    def table(found: re.Match[str]) -> str:
        return f"<!-- table: {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- table: ([a-z-]+) -->.*?<!-- end -->", table, page, flags=re.DOTALL)


# --- picture ---------------------------------------------------------------------------------------------------------

PARTS = (
    ("parameters", "#3b6fb6"),
    ("optimizer state", "#8a63b5"),
    ("gradients", "#e0a030"),
    ("buckets, gathered blocks", "#45aab5"),
    ("activations", "#7fb069"),
)
DEVICES, LIMIT, ACTIVATIONS, BLOCKS = 4, 80e9, 12e9, 32
BOTTOM, TALL, BAR, GAP, LEFT, WIDE = 352, 268, 58, 12, 62, 800
MOST = 156e9


def billions(count: float, strategy: Strategy) -> Footprint:
    """Return the footprint of a model in fp32 with AdamW, recomputed blocks and a small batch."""
    parameters = int(4 * count)
    block = parameters // BLOCKS
    needs = Needs(
        parameters=parameters,
        gradients=parameters,
        optimizer=int(state_bytes(count)),
        buffers=0,
        held=0,
        activations=int(ACTIVATIONS),
        passes=(Moment(parameters, int(ACTIVATIONS), 0),),
        updates=(),
        largest_block=block,
        outside=0,
        block_gradients=block,
    )
    return footprint(needs, strategy, DEVICES if strategy is not Strategy.SINGLE else 1)


def column(row: Footprint, x: float) -> list[str]:
    """Return one device: its parts from below, and its peak above."""
    gradients, rest = row.at_peak
    parts = (
        row.parameters,
        row.optimizer,
        gradients,
        row.peak - row.parameters - row.optimizer - gradients - rest,
        rest,
    )
    drawn, y = [], float(BOTTOM)
    for (_, colour), amount in zip(PARTS, parts, strict=True):
        height = TALL * amount / MOST
        y -= height
        if height < 0.5:
            continue
        drawn.append(
            f'<rect x="{x:g}" y="{y:.1f}" width="{BAR}" height="{height:.1f}" fill="{colour}" stroke="#ffffff"/>'
        )
        if height > 11:
            place = f'x="{x + BAR / 2:g}" y="{y + height / 2 + 4:.1f}" text-anchor="middle"'
            drawn.append(f'<text {place} fill="#ffffff" font-size="11">{amount / 1e9:.0f}</text>')
    peak = f'x="{x + BAR / 2:g}" y="{y - 7:.1f}" text-anchor="middle" font-weight="bold"'
    return [*drawn, f"<text {peak}>{row.peak / 1e9:.0f}</text>"]


def picture() -> str:
    """Return the memory of each device under each strategy, as SVG."""
    parts = [f'<rect width="{WIDE}" height="{BOTTOM + 66}" fill="#ffffff"/>']
    title = "Memory of each device in GB: 7 billion parameters, AdamW in fp32, recomputed blocks"
    parts.append(f'<text x="24" y="22" font-size="13" font-weight="bold">{title}</text>')
    legend = 24.0
    for name, colour in PARTS:
        parts.append(f'<rect x="{legend:g}" y="36" width="12" height="12" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{legend + 18:g}" y="46">{name}</text>')
        legend += 44 + 6.9 * len(name)
    line = BOTTOM - TALL * LIMIT / MOST
    x = float(LEFT)
    for strategy, title in (
        (Strategy.SINGLE, "one device"),
        (Strategy.DDP, "DistributedDataParallel: everything on each"),
        (Strategy.FSDP, "FSDP2: a quarter on each, blocks gathered in turn"),
    ):
        row = billions(7e9, strategy)
        count = row.devices
        wide = count * BAR + (count - 1) * GAP
        for number in range(count):
            at = x + number * (BAR + GAP)
            parts += column(row, at)
            parts.append(f'<text x="{at + BAR / 2:g}" y="{BOTTOM + 18}" text-anchor="middle">GPU {number}</text>')
        parts.append(f'<path d="M{x:g} {BOTTOM + 28}h{wide}" stroke="#999999"/>')
        parts.append(f'<text x="{x + wide / 2:g}" y="{BOTTOM + 46}" text-anchor="middle">{title}</text>')
        x += wide + 38
    parts.append(f'<path d="M{LEFT - 14} {line:.1f}H{WIDE - 12}" stroke="#c0392b" stroke-dasharray="6 4"/>')
    parts.append(f'<text x="{LEFT - 18}" y="{line + 4:.1f}" text-anchor="end" fill="#c0392b">80 GB</text>')
    bounds = f'width="{WIDE}" height="{BOTTOM + 66}" viewBox="0 0 {WIDE} {BOTTOM + 66}"'
    style = 'font-family="DejaVu Sans, Verdana, Arial, sans-serif" font-size="12" fill="#333333"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {bounds} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    Path(__file__).with_name("strategies.svg").write_text(picture(), encoding="utf-8", newline="\n")
