"""Supervise two training loops that differ in one line, compare the results, and prove the effect of that line.

`make demo` runs this.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
WIDEST = 100
THEME = TerminalTheme(
    (16, 20, 27),
    (214, 220, 229),
    [(60, 68, 82), (255, 107, 107), (105, 210, 140), (240, 190, 90), (110, 170, 255), (200, 140, 255), (90, 200, 220),
     (214, 220, 229)],
    [(110, 120, 138), (255, 107, 107), (105, 210, 140), (240, 190, 90), (110, 170, 255), (200, 140, 255),
     (90, 200, 220), (255, 255, 255)],
)  # fmt: skip
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, "SFMono-Regular", Menlo, Consolas, \
"DejaVu Sans Mono", monospace; }}
.{unique_id}-title {{ font: 18px system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>\
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""A terminal without fonts from elsewhere."""


@dataclass
class Output:
    """Printed results of a supervised program, and the findings in it."""

    losses: dict[int, float] = field(default_factory=dict)
    accuracy: float = 0.0
    findings: list[str] = field(default_factory=list)
    headline: str = ""
    report: list[str] = field(default_factory=list)
    """Its lines, from the first finding on."""

    def hear(self, line: str) -> None:
        """Read one line of output."""
        if match := re.match(r"epoch +(\d+): training loss (\S+)", line):
            self.losses[int(match[1])] = float(match[2])
        elif match := re.match(r"held-out accuracy (\S+)%", line):
            self.accuracy = float(match[1])
        elif match := re.match(r"(?:error|warning|speed)\[([a-z-]+)\]: ", line):
            self.findings.append(match[1])
        elif " found, " in line:
            self.headline = line
        if self.findings:
            self.report.append(line)


def lines(command: list[str], console: Console, fine: tuple[int, ...] = (0,)) -> Iterator[str]:
    """Run a command, on a pseudo-terminal if stdout is a terminal, and yield its output line by line.

    Args:
        command: the command line.
        console: for the width of the terminal.
        fine: exit codes that are not failures.

    Raises:
        SystemExit: the command failed.
    """
    environment = os.environ | {"COLUMNS": str(console.width), "PYTHONUNBUFFERED": "1"}
    if console.is_terminal and os.name == "posix":
        import pty
        import termios

        reader, writer = pty.openpty()
        termios.tcsetwinsize(writer, (50, console.width))
    else:
        reader, writer = os.pipe()
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=writer, stderr=writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as stream:
        try:
            for line in stream:
                yield line.rstrip("\r\n")
        except OSError:
            pass  # the other side of the terminal was closed
    if child.wait() not in fine:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")


def supervise(script: str, console: Console) -> Output:
    """Run `truestep run SCRIPT`, print its output, and return its results."""
    output = Output()
    console.print()
    console.print(Text.assemble(("$ ", "dim"), (f"truestep run {script}", "bold")))
    before = ""
    for line in lines([sys.executable, "-m", "truestep", "run", script], console):
        text = Text.from_ansi(line)
        output.hear(text.plain)
        if before and re.match(r"[a-z]+\[[a-z-]+\]: |no failure found", text.plain):
            console.print()
        console.print(text)
        before = text.plain
    console.print()
    return output


def prove(script: str, console: Console) -> bool:
    """Run `truestep prove` on a script, print its output, and return True if its finding makes a difference."""
    console.print()
    console.print(Text.assemble(("$ ", "dim"), (f"truestep prove --steps 5000 --seeds 5 {script}", "bold")))
    before = ""
    for line in lines(
        [sys.executable, "-m", "truestep", "prove", "--steps", "5000", "--seeds", "5", script], console, (0, 1)
    ):
        before = Text.from_ansi(line).plain or before
        console.print(Text.from_ansi(line))
    console.print()
    return "makes a difference" in before


def quote(report: list[str], page: Path) -> None:
    """Replace the report that a page quotes."""
    text = page.read_text(encoding="utf-8")
    quoted = re.compile(r"^    error\[missing-zero-grad\]: optimizer.*\n(?:(?:    .*)?\n)*    .*", re.MULTILINE)
    lines = "\n".join(f"    {line}".rstrip() for line in report)
    page.write_text(quoted.sub(lambda _: lines, text, count=1), encoding="utf-8")


def compare(accident: Output, corrected: Output, console: Console) -> None:
    """Print both results side by side, and the conclusion."""
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0))
    table.add_column("")
    table.add_column("accident", justify="right", header_style="bold red")
    table.add_column("corrected", justify="right", header_style="bold green")
    first, last = min(accident.losses), max(accident.losses)
    for epoch in (first, last):
        table.add_row(
            f"training loss, epoch {epoch}", f"{accident.losses[epoch]:.3f}", f"{corrected.losses[epoch]:.3f}"
        )
    table.add_row("held-out accuracy", f"[bold]{accident.accuracy:.1f}%", f"[bold]{corrected.accuracy:.1f}%")
    table.add_row("findings", ", ".join(accident.findings) or "none", ", ".join(corrected.findings) or "none")
    console.print(table)
    console.print()
    fell = 1 - accident.losses[last] / accident.losses[first]
    console.print(f"With one line missing the loss still fell by {fell:.0%}, and nothing crashed.")
    console.print(
        f"Of 100 held-out digits the accident misreads {100 - accident.accuracy:.0f}, "
        f"the corrected loop {100 - corrected.accuracy:.0f}."
    )


def main() -> int:
    """Run the demo on the terminal; save a picture of it on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--svg", type=Path, help="file for a picture of the whole demo; also updates the pages that quote it"
    )
    picture = parser.parse_args().svg
    width = WIDEST if picture else min(Console().width, WIDEST)
    console = Console(width=width, highlight=False, record=bool(picture), force_terminal=bool(picture) or None)
    console.print(Rule("200 epochs on handwritten digits, with one line missing", style="dim"))
    accident = supervise("examples/digits_accident.py", console)
    console.print(Rule("the same program, with the line that the report asks for", style="dim"))
    corrected = supervise("examples/digits_corrected.py", console)
    console.print(Rule("side by side", style="dim"))
    compare(accident, corrected, console)
    as_expected = accident.findings == ["missing-zero-grad"] and not corrected.findings
    if picture:
        console.save_svg(str(picture), title="make demo", theme=THEME, code_format=FRAME)
        for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
            quote(accident.report, page)
        return 0 if as_expected else 1
    console.print()
    console.print(Rule("the program unedited, with the remedy from outside, over five seeds", style="dim"))
    return 0 if prove("examples/digits_accident.py", console) and as_expected else 1


if __name__ == "__main__":
    raise SystemExit(main())
