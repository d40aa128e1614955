"""The printed texts of ``truestep exercise``."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from truestep.exercises.catalogue import Exercise, PlantedFailure
from truestep.exercises.judging import Answer, BehaviourCheck, ScriptJudgement
from truestep.report.excerpt import wrap

_STYLES = {"+": "green", "-": "red", "@": "dim"}


def show_list(all_of_them: Sequence[Exercise], console: Console) -> None:
    """Print both kinds of exercises, with their titles."""
    width = max(len(one.name) for one in all_of_them) + 2
    kinds = {
        "Find it before TrueStep does: ordinary scripts with one silent failure": True,
        "Write it yourself: functions without a body, and checks of their behaviour": False,
    }
    for heading, planted in kinds.items():
        console.print(Text(heading, style="bold blue"))
        for one in all_of_them:
            if isinstance(one, PlantedFailure) is planted:
                first, *rest = wrap(one.title.rstrip("."), console.width - width - 2)
                console.print(Text.assemble("  ", (f"{one.name:{width}}", "bold"), first), soft_wrap=True)
                for line in rest:
                    console.print(Text(" " * (width + 2) + line), soft_wrap=True)
        console.print()
    _commands({"truestep exercise NAME": "write one into this folder"}, console)


def show_task(chosen: Exercise, path: Path, console: Console) -> None:
    """Print the path of the new file, the symptom and the further commands."""
    console.print(Text.assemble("wrote ", (str(path), "bold"), f": {chosen.title}\n"), soft_wrap=True)
    there = "" if str(path) == chosen.file else f" {path}"
    check = {f"truestep exercise {chosen.name}{there} --check": "check your version"}
    if isinstance(chosen, PlantedFailure):
        _labelled("symptom", chosen.symptom, console)
        _labelled("look", chosen.look, console)
        _labelled("goal", f"{_goal(chosen)}, without a silent failure", console)
        check = {f"python {path}": "see the symptom"} | check
    else:
        _labelled("goal", "write the bodies that raise NotImplementedError as their docstrings say", console)
    console.print()
    _commands(check | {f"truestep exercise {chosen.name} --hint": "when you are stuck"}, console)


def show_hint(chosen: Exercise, console: Console) -> None:
    """Print the hint."""
    _labelled("hint", chosen.hint, console)
    if isinstance(chosen, PlantedFailure):
        _labelled(
            "report", f"`truestep run {chosen.file}` ends with a ledger: read its line `{chosen.account}`", console
        )


def show_solution(chosen: Exercise, console: Console) -> None:
    """Print the difference between the exercise and its solution, with the explanation."""
    before, after = chosen.text().splitlines(), chosen.solution().splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    for line in lines:
        shown = f"line {line.split()[1].split(',')[0][1:]}" if line.startswith("@@") else line
        console.print(Text(f"  {shown}".rstrip(), style=_STYLES.get(line[:1], "")), soft_wrap=True)
    console.print()
    _paragraph(chosen.why, console)
    if isinstance(chosen, PlantedFailure):
        console.print()
        _commands({f"truestep explain {chosen.rule}": "its page, with a proof"}, console)


def show_judgement(
    chosen: PlantedFailure, path: Path, judgement: ScriptJudgement, seconds: float, console: Console
) -> None:
    """Print whether a script is mended, and the next commands."""
    answer, got = judgement.answer, f"{chosen.metric} {judgement.metric}"
    text = {
        Answer.MENDED: "mended: no silent failure is found, and the result is that of a healthy script",
        Answer.STILL_THERE: "not yet: TrueStep still finds the failure that was planted",
        Answer.ANOTHER: "not yet: the planted failure is mended, and there is another one now",
        Answer.METRIC: "not yet: the failure is not found any more, but the result is not that of a healthy script",
        Answer.UNTRAINED: f"not yet: {path} makes no optimizer step, so nothing was trained",
        Answer.NO_METRIC: f'not yet: the script prints no line "{chosen.metric}: NUMBER" any more',
        Answer.CRASHED: f"not yet: {path} ended with an error",
        Answer.ENDLESS: f"not yet: {path} still ran after {seconds:.0f} s, and was stopped",
    }[answer]
    if judgement.switched_off:
        text = "not yet: the failure is allowed by a comment or the configuration, and still there"
    head, _, tail = text.partition(":")
    style = "bold green" if answer is Answer.MENDED else "bold red"
    for number, line in enumerate(wrap(f"{head}:{tail}", console.width, hang=2)):
        console.print(
            Text.assemble((head, style), line.removeprefix(head)) if not number else Text(line), soft_wrap=True
        )
    console.print()
    if judgement.error:
        console.print(Text("\n".join(f"  {line}" for line in judgement.error.splitlines())), soft_wrap=True)
        console.print()
    if judgement.other:
        _labelled("found", judgement.other, console)
        console.print()
    if answer in (Answer.MENDED, Answer.STILL_THERE, Answer.METRIC) and judgement.metric is not None:
        _labelled("result", f"{got}; the goal is {_goal(chosen).removeprefix(chosen.metric + ' of ')}", console)
        console.print()
    name = chosen.name
    if answer is Answer.MENDED:
        _commands(
            {f"truestep exercise {name} --solution": "compare it with ours", "truestep exercise": "the next one"},
            console,
        )
    elif answer is Answer.ANOTHER:
        _commands({f"truestep run {path}": "read the report about it"}, console)
    else:
        _commands(
            {f"truestep exercise {name} --hint": "a hint", f"truestep exercise {name} --solution": "the answer"},
            console,
        )


def show_checks(chosen: Exercise, path: Path, checks: Sequence[BehaviourCheck], console: Console) -> None:
    """Print the result of each check of a written function."""
    for one in checks:
        mark, style = ("ok", "bold green") if one.passed else ("no", "bold red")
        console.print(Text.assemble((f"  {mark}  ", style), one.title), soft_wrap=True)
        for line in one.message.splitlines():
            for part in wrap(line, console.width - 8) or [""]:
                console.print(Text(f"        {part}"), soft_wrap=True)
    passed = sum(one.passed for one in checks)
    console.print(f"\n{passed} of {len(checks)} checks passed", markup=False)
    if passed < len(checks) or not checks:
        console.print()
        hints = {f"truestep exercise {chosen.name} --hint": "a hint"}
        _commands(hints | {f"truestep exercise {chosen.name} --solution": "the answer"}, console)


def _goal(chosen: PlantedFailure) -> str:
    """Return the range of a metric in words."""
    low, high = chosen.healthy
    if high >= 1.0:
        return f"{chosen.metric} of at least {low:g}"
    return f"{chosen.metric} of at most {high:g}" if low <= 0 else f"{chosen.metric} between {low:g} and {high:g}"


def _labelled(label: str, text: str, console: Console) -> None:
    for number, line in enumerate(wrap(text, console.width - 11)):
        console.print(Text.assemble("  ", (f"{'' if number else label:<9}", "bold"), line), soft_wrap=True)


def _paragraph(text: str, console: Console) -> None:
    for line in wrap(text, console.width):
        console.print(Text(line), soft_wrap=True)


def _commands(commands: dict[str, str], console: Console) -> None:
    width = max(map(len, commands))
    for command, does in commands.items():
        console.print(Text.assemble("  ", (f"{command:<{width}}", "bold"), f"  {does}"), soft_wrap=True)
