"""Draw the schedules, and print the table of the how-to: `python docs/assets/schedules.py`."""

from __future__ import annotations

from pathlib import Path

import torch

from truestep import schedules

TOTAL = 100
ROWS = (0, 2, 5, 25, 50, 79, 85, 90, 95, 99, 100)
COLOURS = {
    "warmup_cosine": "#1f77b4",
    "warmup_linear": "#d62728",
    "wsd": "#2ca02c",
    "inverse_sqrt": "#9467bd",
    "constant": "#c8c8c8",
}
LEFT, TOP, WIDTH, HEIGHT = 46, 14, 520, 210


def lrs(name: str) -> list[float]:
    """Return the lr at every step of a training of 100 steps with a peak lr of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = getattr(schedules, name)(optimizer, total_steps=TOTAL)
    seen = []
    for _ in range(TOTAL + 1):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return seen


def table() -> str:
    """Return the table, in Markdown."""
    columns = [lrs(name) for name in COLOURS]
    head = ["step", *(f"`{name}`" for name in COLOURS)]
    rows = [[str(step), *(f"{column[step]:.3f}" for column in columns)] for step in ROWS]
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def picture() -> str:
    """Return the picture, as SVG."""
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    parts = [f'<rect width="{right + 124}" height="{bottom + 40}" fill="#ffffff"/>']
    for tenth in (0, 5, 10):
        y = bottom - HEIGHT * tenth / 10
        parts.append(f'<path d="M{LEFT} {y:g}H{right}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end">{tenth / 10:.1f}</text>')
    for step in range(0, TOTAL + 1, 20):
        x = LEFT + WIDTH * step / TOTAL
        parts.append(f'<text x="{x:g}" y="{bottom + 18}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2:g}" y="{bottom + 34}" text-anchor="middle">step</text>')
    lines: list[str] = []
    for row, (name, colour) in enumerate(COLOURS.items()):
        points = " ".join(
            f"{LEFT + WIDTH * step / TOTAL:.1f},{bottom - HEIGHT * lr:.1f}" for step, lr in enumerate(lrs(name))
        )
        y = TOP + 20 + 20 * row
        width = 6 if name == "constant" else 2  # it lies under the others, where they have not begun to fall
        lines.insert(0, f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts.append(f'<path d="M{right + 12} {y - 4}h14" stroke="{colour}" stroke-width="{max(3, width)}"/>')
        parts.append(f'<text x="{right + 31}" y="{y}">{name}</text>')
    size = f'width="{right + 124}" height="{bottom + 40}" viewBox="0 0 {right + 124} {bottom + 40}"'
    style = 'font-family="sans-serif" font-size="12" fill="#333333"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts + lines) + "\n</svg>\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
    print(table())
