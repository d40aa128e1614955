"""Write docs/explanation/peers.md, TrueStep beside other frameworks, from the numbers in bench/results.

``python docs/peers.py`` writes the page. Every number comes from a file there, with the command that measured it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "bench" / "results"
PAGE = HERE / "explanation" / "peers.md"
HEAD = """# Beside other frameworks

All numbers here were measured, each with the command that measures it again. `pip install 'truestep[frameworks]'`
installs the others at the versions below. The programs are in `bench`, the numbers in `bench/results`; `python
docs/peers.py` writes this page from them.

Absolute times are those of a small, busy machine ({machine}). Compare the rows of one table."""
STEP = """## Cost of a step

    python bench/toolkit_step.py --save

Time that each library adds to a hand-written step of a small network (MLP 16-32-1, batch 32): median over {rounds}
rounds of {steps} steps, in turns in one process, in processor time. The step by hand takes {off:.0f} us, or
{on:.0f} us with clipping, a schedule and logging. Every loop ends with the weights of its hand-written equivalent,
bit for bit.

| loop | nothing on | clipping, schedule, logging |
| --- | --- | --- |
{rows}

Ignite adds less than TrueStep. TrueStep keeps every logged value, and checks losses and norms for spikes and NaN;
the others log each 50th."""
EXACT = """## Exactness

    python bench/exactness.py --save

*Window*: the sum of the updates of ten micro-batches with gradient 1 in windows of four, where {right:g} is right.
The other columns: the largest difference of a weight from an uninterrupted run, after a kill in step 8 of 40 and a
resume as the documentation of each says.

| framework | window | plain | dropout | random samples | both, 2 workers |
| --- | --- | --- | --- | --- | --- |
{rows}

{notes}"""
RANKS = """## Two ranks

    python bench/ranks.py --save

Milliseconds of a step on two processes of this machine over gloo, and the ratio to the loop by hand of the same
kind, the median over {rounds} rounds. All weights are equal to those by hand.

| loop | small model | large model |
| --- | --- | --- |
{rows}"""
DATA = """## Data

    python bench/loader.py --save
    python bench/lab.py --save

Batches of 256 from 60,000 samples in memory, shuffled: {loader} us with `truestep.Loader`, {indexing} us by plain
indexing, {torch} us with a `DataLoader` over a `TensorDataset`. Sample by sample, TrueStep is slower: {own} us for
{theirs} us, since it seeds each sample, so that a resumed run draws the same random numbers.

FashionMNIST to {goal:.1%} of the test images, the same network: {toolkit:.1f} s of processor time with
`truestep.data`, {script:.1f} s with the usual script (a `DataLoader` over images that are decoded and normalised
one by one). Medians of three seeds."""
REST = """## Not measured

- Training on several GPUs or hosts against other frameworks.
- torchtnt and fastai: {absent}.
- Other tools that look for failures. Their checks and those of this project were not run on the same programs, so a
  table would compare nothing. [Mutants](../reference/mutants.md) has the share of planted mistakes that are found."""


def text() -> str:
    """Return the page."""
    exact, ranks, steps = (_read(name) for name in ("exactness", "ranks", "toolkit_step"))
    machine = steps["machine"]
    said = f"{machine['cores']} cores, one thread, torch {machine['torch']}, Python {machine['python']}"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    absent = next(row["window"] for row in exact["rows"] if "torchtnt" in row["framework"]).removeprefix("not run: ")
    parts = [HEAD.format(machine=f"{said}; {versions}"), _steps(steps), _exactness(exact), _ranks(ranks), _data()]
    return "\n\n".join([*parts, REST.format(absent=absent)]) + "\n"


def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _steps(found: Any) -> str:
    rows = found["rows"]
    assert all(row.get("differs", 0.0) == 0.0 for row in rows), "the page says that all weights are equal"
    added = {(row["loop"], row["on"]): f"{row['over_us']:,.0f} us" for row in rows if "over_us" in row}
    hand = {row["on"]: row["step_us"] for row in rows if row["loop"] == "by hand"}
    names = dict.fromkeys(loop for loop, _ in added)
    lines = [
        f"| {f'**{loop}**' if loop.startswith('TrueStep') else loop} | {added.get((loop, False), '')} "
        f"| {added.get((loop, True), '')} |"
        for loop in names
    ]
    return STEP.format(
        rounds=found["rounds"], steps=found["steps_a_round"], off=hand[False], on=hand[True], rows="\n".join(lines)
    )


def _exactness(found: Any) -> str:
    lines, notes = [], []
    for row in found["rows"]:
        name = row["framework"]
        if isinstance(row["resume"], dict):
            cells = [f"{one['differs']:.2g}" for one in row["resume"].values()]
            bold = f"**{name}**" if name == "TrueStep" else name
            lines.append(f"| {bold} | {row['window']} | {' | '.join(cells)} |")
        elif not row["window"].startswith("not run"):
            notes.append(f"In {name}, {row['window']}, and {row['resume']}.")
    return EXACT.format(right=found["right"], rows="\n".join(lines), notes=" ".join(notes))


def _ranks(found: Any) -> str:
    cells: dict[str, dict[str, str]] = {}
    assert all(row.get("differs", 0.0) == 0.0 for row in found["rows"]), "the page says that all weights are equal"
    for row in found["rows"]:
        ratio = f" ({row['ratio']:.2f})" if "ratio" in row else ""
        cells.setdefault(row["loop"], {})[row["model"]] = f"{row['step_ms']:.1f}{ratio}"
    lines = [f"| {loop} | {by['small']} | {by['large']} |" for loop, by in cells.items()]
    return RANKS.format(rounds=found["rounds"], rows="\n".join(lines))


def _data() -> str:
    loader = {row["way"]: row["us_a_batch"] for row in _read("loader")["rows"]}
    lab = _read("lab")
    times = {row["program"]: row["process_s"] for row in lab["rows"]}
    return DATA.format(
        loader=loader["Loader, in memory"],
        indexing=loader["plain indexing"],
        torch=loader["DataLoader, TensorDataset"],
        own=loader["Loader, sample by sample"],
        theirs=loader["DataLoader, sample by sample"],
        goal=lab["goal"],
        toolkit=times["toolkit"],
        script=times["the lab's script"],
    )


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
