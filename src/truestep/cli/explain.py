"""``truestep explain``: show a rule's manual page, run its proof, or find rules by symptom."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from truestep.cli.manual import by_symptom, of_post_mortem
from truestep.cli.shell import completion
from truestep.errors import UnknownRule, UsageError
from truestep.findings import Severity
from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.report.color import console as colored_console
from truestep.report.excerpt import wrap
from truestep.report.terminal import SEVERITY_STYLES
from truestep.rules import Rule, _proof, catalogue, rule
from truestep.rules._page import Block, parse
from truestep.symptoms import Match, search

_WIDEST = 100


def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RULE|WORDS",
            help="A rule's id, such as missing-zero-grad, or a symptom: loss is nan.",
            autocompletion=completion.pages,
        ),
    ],
    prove: Annotated[
        bool, typer.Option("--prove", help="Run the broken and the correct program and compare them.")
    ] = False,
    format: Annotated[
        Literal["text", "json"], typer.Option(help="Format of the causes of a symptom: text, or one JSON document.")
    ] = "text",
) -> int:
    """Show a rule's manual page, or find rules by symptom.

    With the id of a rule: the failure, its cost and its fix. With the kind of a post-mortem, such as graph-freed: its
    content. With other words, such as "loss is nan", "works in train not in eval" or a message of torch: the failures
    with that symptom, the most probable ones first, and the commands that tell them apart.
    """
    id = " ".join(words)
    console = colored_console()
    console.width = min(console.width, _WIDEST)
    if format == "json" and (prove or id in catalogue() or id in POST_MORTEMS):
        raise UsageError(
            f"--format json is for symptoms, got {id}",
            remedy="get the catalogue with `truestep rules --format json`",
        )
    if id in POST_MORTEMS and not prove:
        of_post_mortem.show(id, console)
        return 0
    if id not in catalogue() and not prove:
        matches = _matches(id)
        if format == "json":
            print(json.dumps(by_symptom.document(matches), indent=2, ensure_ascii=False))
        else:
            by_symptom.show(matches, console)
        return 0
    found = rule(id)
    folder = _proof.find(id)
    if prove:
        return _prove(found, folder, console)
    _show(found, console)
    if folder is not None:
        _heading("Proof", console)
        _prose(f"`truestep explain {id} --prove` runs a broken and a correct program and compares them.", console)
    return 0


def _matches(words: str) -> list[Match]:
    """Return the symptoms and pages that fit some words.

    Raises:
        UnknownRule: nothing fits, or the words are nearly the id of a rule.
    """
    if not words.strip():
        raise UsageError(
            "explain needs a rule or words, got an empty text",
            remedy='write `truestep explain missing-zero-grad`, or `truestep explain "loss is nan"`',
        )
    id = re.fullmatch(r"[a-z]+(?:-[a-z]+)+", words)
    matches = [] if id and difflib.get_close_matches(words, catalogue(), n=1, cutoff=0.8) else search(words)
    if matches:
        return matches
    if id:
        rule(words)  # raises with the nearest ids
    raise UnknownRule(
        f'no symptom and no page of a rule fits "{words}"',
        expected='expected an observation in a few words, such as "loss is nan", "out of memory" or a message of torch',
        remedy="run `truestep run train.py`, which asks all rules; or list them with `truestep rules`",
    )


def _show(found: type[Rule], console: Console) -> None:
    page = parse(found.__doc__ or "")
    facts = f"  confidence {found.confidence.value}, since {found.since}{', preview' if found.preview else ''}"
    severity = found.severity.value
    console.print(Text.assemble((f"{severity}[{found.id}]", SEVERITY_STYLES[Severity(severity)]), (facts, "dim")))
    _prose(page.title, console)
    for section in page.sections:
        _heading(section.heading, console)
        previous: Block | None = None
        for block in section.blocks:
            if previous is not None and not previous.kind == block.kind == "item":
                console.print()
            _block(block, console)
            previous = block


def _heading(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, style="bold blue"))


def _block(block: Block, console: Console) -> None:
    if block.kind == "code":
        for line in _code(block.text).split("\n", allow_blank=True):
            console.print(Text("    ") + line if line.plain else line, soft_wrap=True)
    else:
        _prose(block.text, console, "- " if block.kind == "item" else "")


def _code(text: str) -> Text:
    code = Syntax(text, "python", theme="ansi_dark", background_color="default").highlight(text)
    code.rstrip()
    return code


def _prose(text: str, console: Console, bullet: str = "") -> None:
    """Print a paragraph; names in backticks are printed bold on a terminal, and keep their backticks elsewhere."""
    quote = "" if console.color_system else "`"
    for number, line in enumerate(wrap(text, console.width - len(bullet))):
        pieces = [
            (f"{quote}{piece}{quote}" if odd % 2 else piece, "bold" if odd % 2 else "")
            for odd, piece in enumerate(line.split("`"))
        ]
        console.print(Text.assemble(" " * len(bullet) if number else bullet, *pieces), soft_wrap=True)


def _prove(found: type[Rule], folder: Path | None, console: Console) -> int:
    proof = _proof.load(folder) if folder is not None else None
    if folder is None or proof is None:
        raise UsageError(
            f"the rule {found.id} has no proof that can be run here",
            expected="expected a folder proofs/" + found.id + " with bad.py, good.py and proof.toml",
            remedy=f"read its page: truestep explain {found.id}",
        )
    bad, good = _proof.programs(folder)
    _program(bad, "the failure", "red", console)
    _program(good, "the fix", "green", console)
    return _results(proof, console)


def _program(program: _proof.ProofProgram, title: str, style: str, console: Console) -> None:
    console.print(Text.assemble((program.path.name, "bold"), f"  {title}"))
    width = len(str(len(program.lines)))
    code = _code("\n".join(program.lines)).split("\n", allow_blank=True)
    for number, line in enumerate(code, start=1):
        marked = number in program.marked
        margin = Text(f"{'>' if marked else ' '} {number:>{width}} | ", style=f"bold {style}" if marked else "dim")
        if marked:
            line.stylize(f"bold {style}")
        console.print(Text.assemble(margin, line), soft_wrap=True)
    console.print()


def _results(proof: _proof.Proof, console: Console) -> int:
    seeds: list[tuple[int, float, float]] = []
    try:
        with console.status("running") if console.is_interactive else _Quiet() as status:
            for row in _proof.run(proof):
                seeds.append(row)
                status.update(f"running: {len(seeds)} of {len(proof.seeds)} seeds done")
    except KeyboardInterrupt:
        return 130
    bad, good = tuple(row[1] for row in seeds), tuple(row[2] for row in seeds)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("seed")
    for name in ("bad.py", "good.py"):
        table.add_column(name, justify="right")
    for seed, worse, better in seeds:
        table.add_row(str(seed), f"{worse:.4g}", f"{better:.4g}")
    table.add_row("mean", f"{fmean(bad):.4g}", f"{fmean(good):.4g}", style="bold")
    what = f"{proof.metric}, " if proof.metric else ""
    console.print(Text(f"{what}{proof.better} is better", style="dim"))
    console.print(table)
    harm = proof.harm(bad, good)
    holds = harm > proof.margin
    verdict = Text("proved" if holds else "not proved here", style="bold green" if holds else "bold red")
    relation = "more" if holds else "no more"
    margin = f": the harm is {harm:.4g}, {relation} than the margin of {proof.margin:.4g}"
    console.print(Text.assemble(verdict, margin))
    if holds and proof.says:
        _prose(proof.says, console)
    return 0 if holds else 1


class _Quiet:
    """A status line that prints nothing, for output that is not a terminal."""

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, status: str) -> None:
        pass
