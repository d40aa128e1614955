"""Write the pages of the lab from docs/lab/pages.toml, the programs, and their stored output.

``python docs/lab.py`` writes the pages and the pictures; ``python docs/lab.py NAME`` runs a program first, with seed 0,
and stores its output.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from truestep.exercises.catalogue import PlantedFailure, exercises

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDER, ASSETS = HERE / "lab", HERE / "assets"
_HEIGHT, _LEFT, _WIDTH = 16, 210, 700
_COLOURS = ("#8b939e", "#2b6cb0")


def catalogue() -> dict[str, Any]:
    """Return the pages by name."""
    return tomllib.loads((FOLDER / "pages.toml").read_text(encoding="utf-8"))


def page(name: str, one: dict[str, Any]) -> str:
    """Return a page: text, picture, the lines that matter, output, exercise, the whole program."""
    parts = [f"# {one['title']}", one["text"]]
    if "picture" in one:
        parts.append(f"![{one['alt']}](../assets/{one['picture']})")
    if "measured" in one:
        seeds = max(len(values) for _, values in one["measured"])
        note = "a bar for each of the seeds" if seeds > 1 else "seed 0"
        parts.append(f"![{_said(one)}](../assets/lab-{name}.svg)\n\n*{one['unit']}, {note}.*")
    if "code" in one:
        parts.append(f"```python\n{one['code'].strip()}\n```")
    output = FOLDER / "output" / f"{name}.txt"
    shown = f"    $ {one['command']}\n"
    if output.exists():
        shown += "".join(f"    {line}".rstrip() + "\n" for line in output.read_text(encoding="utf-8").splitlines())
    parts.append(f"## Run it\n\n{shown.rstrip()}")
    parts.append(f"Data: {one['data']}." if "data" in one else "It needs nothing but `truestep[new]`.")
    planted = isinstance(exercises()[one["exercise"]], PlantedFailure)
    task = "find a failure before TrueStep does" if planted else "write a part of it yourself"
    parts.append(
        f"`truestep run` has no finding on it. Then {task}: `truestep exercise {one['exercise']}`, {one['about']}."
    )
    source = (ROOT / one["program"]).read_text(encoding="utf-8")
    parts.append(f"## The program\n\n`{one['program']}`:\n\n```python\n{source.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def bars(one: dict[str, Any]) -> str:
    """Return the measured values as bars, in SVG: the last two rows are those to compare."""
    rows = [(label, value, number) for number, (label, values) in enumerate(one["measured"]) for value in values]
    most = max(value for _, value, _ in rows) or 1.0
    last = len(one["measured"]) - 1
    lines, y, before = [], 8, -1
    for label, value, number in rows:
        y += 10 if number != before and before >= 0 else 0
        length = (_WIDTH - _LEFT - 70) * value / most
        colour = _COLOURS[number % 2 if last else 1]
        if number != before:
            lines.append(_text(_LEFT - 10, y + 12, label, "end"))
        lines.append(
            f'<rect x="{_LEFT}" y="{y}" width="{max(1, length):.1f}" height="{_HEIGHT - 3}" rx="2" fill="{colour}"/>'
        )
        lines.append(_text(_LEFT + length + 8, y + 11, f"{value:g}", "start"))
        before, y = number, y + _HEIGHT
    size = f'width="{_WIDTH}" height="{y + 8}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 8}" {size} role="img">'
    return "\n".join([head, f"<title>{escape(_said(one))}</title>", *lines, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12" fill="#7a828c"'
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" {style}>{escape(text)}</text>'


def _said(one: dict[str, Any]) -> str:
    parts = [f"{label} {', '.join(f'{value:g}' for value in values)}" for label, values in one["measured"]]
    return f"{one['unit']}: {'; '.join(parts)}"


def run(name: str, one: dict[str, Any]) -> None:
    """Run a program of the lab and store its output."""
    words = shlex.split(one["command"])[1:]
    if "&&" in words:
        sys.exit(f"{name}: run `{one['command']}` and store its output as docs/lab/output/{name}.txt")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=True)
    (FOLDER / "output" / f"{name}.txt").write_text(done.stdout, encoding="utf-8")


def main(names: Sequence[str]) -> None:
    """Write all pages and pictures, after the runs of the named programs."""
    known = catalogue()
    for name in names:
        run(name, known[name])
    for name, one in known.items():
        (FOLDER / f"{name}.md").write_text(page(name, one), encoding="utf-8")
        if "measured" in one:
            (ASSETS / f"lab-{name}.svg").write_text(bars(one), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
