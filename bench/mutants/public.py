"""Plant mistakes in other people's programs, which the project does not hold, and count how many TrueStep finds.

    python bench/mutants/public.py FOLDER            five mutants of each operator
    python bench/mutants/public.py FOLDER --alone    the programs as they are: findings, and whether results repeat
    python bench/mutants/public.py FOLDER --by-hand MISTAKES.toml    mistakes that were written for single programs

FOLDER/programs.toml names them: each has a folder of its name with a script that takes no argument, downloads nothing,
and ends in seconds. docs/reference/mutants.md
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "mutants_public.json"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TRUESTEP_WATCH", "0")
sys.path.append(str(ROOT / "tests" / "support"))

import builds  # noqa: E402, F401
import drops  # noqa: E402, F401
import moves  # noqa: E402, F401
import swaps  # noqa: E402, F401
import warm  # noqa: E402
from healthy import Program, half  # noqa: E402
from operators import OPERATORS, Mutant, mutants  # noqa: E402
from score import by, share, summary, table  # noqa: E402
from trial import Trial, digest, run  # noqa: E402

_CITED = ("name", "field", "origin", "commit", "licence", "file")


@dataclass(frozen=True)
class Public(Program):
    """A program of somebody else."""

    title: str
    field: str
    folder: Path
    script: str
    true: tuple[str, ...]
    """Rules with a finding on the program as it is that was read and is true."""

    @property
    def name(self) -> str:
        """Return its name in programs.toml."""
        return self.title


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the programs, with programs.toml")
    parser.add_argument("--per-operator", type=int, default=5, help="largest number of mutants of an operator")
    parser.add_argument("--only", default="", help="operators, with commas between")
    parser.add_argument("--half", choices=["open", "aside"], help="programs of one half only")
    parser.add_argument("--keep", type=Path, help="folder to write the mutants of the open half into that were missed")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--alone", action="store_true", help="run the programs without a mistake")
    parser.add_argument(
        "--by-hand", type=Path, metavar="TOML", help="mistakes of single programs, in place of operators"
    )
    parser.add_argument("--programs", default="", help="parts of names of programs, with commas between")
    options = parser.parse_args()
    warm.install()
    listed = tomllib.loads((options.folder / "programs.toml").read_text(encoding="utf-8"))["program"]
    parts = [part for part in options.programs.split(",") if part]
    programs = [_read(options.folder, one) for one in listed if not parts or any(part in one["name"] for part in parts)]
    with ThreadPoolExecutor(options.jobs) as pool:
        if options.alone:
            result = _alone(programs, pool) | {"programs": [{key: one[key] for key in _CITED} for one in listed]}
        elif options.by_hand:
            result = _by_hand(programs, pool, options)
        else:
            result = _mutated([one for one in programs if options.half in (None, one.half)], pool, options)
    if options.save:
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(known | result, indent=1) + "\n", encoding="utf-8")


def _alone(programs: list[Public], pool: ThreadPoolExecutor) -> dict[str, Any]:
    alarms, true = [], []
    for program, said in zip(programs, pool.map(_judged, programs), strict=True):
        print(f"{program.name}: {', '.join(said) or 'nothing'}", flush=True)
        true += [f"{program.name} {one}" for one in said if one.partition(":")[0] in program.true]
        alarms += [f"{program.name} {one}" for one in said if one.partition(":")[0] not in program.true]
    fields = len({program.field for program in programs})
    return {"as they are": {"programs": len(programs), "fields": fields, "false alarms": alarms, "true findings": true}}


def _judged(program: Public) -> list[str]:
    """Return the findings on a program as it is, and its errors."""
    from programs import supervise

    with _copied(program) as script:
        first = digest(script, script.parent)
    with _copied(program) as script:
        again = digest(script, script.parent)
    if first != again or first in ("", "slow"):
        return ["crashes, is slow, or has another result each time"]
    with _copied(program) as script:
        seen = supervise(script, cwd=script.parent)
    return [*(f"{rule}:{line}" for rule, line in sorted(seen.found)), *seen.errors]


@contextmanager
def _copied(program: Public) -> Iterator[Path]:
    """Give the script in a copy of its folder, which it may write to."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(program.folder, folder, dirs_exist_ok=True)
        yield Path(folder, program.script)


def _mutated(programs: list[Public], pool: ThreadPoolExecutor, options: argparse.Namespace) -> dict[str, Any]:
    chosen = list(_chosen(programs, options.only, options.per_operator))
    needed = list(dict.fromkeys(program for program, _ in chosen))
    print(f"{len(chosen)} mutants of {len(needed)} programs", flush=True)
    originals = dict(zip(needed, pool.map(_digest, needed), strict=True))
    rows = []
    for row in pool.map(lambda one: _row(*one, originals[one[0]], options.keep), chosen):
        rows.append(row)
        print(_shown(row), flush=True)
    scores = summary(rows) | {"field": by((row for row in rows if row["valid"]), lambda row: row["field"])}
    print(table(scores))
    missed = [row for row in rows if row["valid"] and not row["found"] and row["half"] == "open"]
    places = [f"{row['operator']} {row['program']}:{row['line']}" for row in missed]
    return {"scores": scores, "not found, open half": places}


def _by_hand(programs: list[Public], pool: ThreadPoolExecutor, options: argparse.Namespace) -> dict[str, Any]:
    """Plant mistakes that were written for single programs, as those of mistakes.toml are."""
    named = {program.name: program for program in programs}
    listed = tomllib.loads(options.by_hand.read_text(encoding="utf-8"))["mistake"]
    chosen = [one for one in listed if one["program"] in named and options.half in (None, one["half"])]
    needed = list(dict.fromkeys(named[one["program"]] for one in chosen))
    originals = dict(zip(needed, pool.map(_digest, needed), strict=True))
    rows = []
    for row in pool.map(lambda one: _edited(one, named[one["program"]], originals), chosen):
        rows.append(row)
        if row["half"] == "open":  # misses of the other half are not to be read
            print(_shown(row), f"\n      {row['mistake']}", flush=True)
    valid = [row for row in rows if row["valid"]]
    scores = {"score": share(valid)} | {key: by(valid, lambda row, key=key: row[key]) for key in ("half", "kind")}
    print(json.dumps(scores, indent=1))
    return {"mistakes by hand": scores}


def _edited(one: dict[str, Any], program: Public, originals: dict[Public, str]) -> dict[str, Any]:
    planted, lines = str(program.path.relative_to(program.folder)), []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(program.folder, folder, dirs_exist_ok=True)
        for edit in one.get("edits", [one]):
            planted = edit.get("file", planted)
            text = Path(folder, planted).read_text(encoding="utf-8")
            if text.count(edit["old"]) != 1:
                raise SystemExit(f"{program.name}/{planted} must have the text once: {edit['old']}")
            line = text[: text.index(edit["old"])].count("\n") + 1
            lines += [line, line + edit["old"].count("\n")]
            Path(folder, planted).write_text(text.replace(edit["old"], edit["new"]), encoding="utf-8")
        text = Path(folder, planted).read_text(encoding="utf-8")
        scope = (min(lines), max(lines))
        trial = run(text, planted, originals[program], scope, False, Path(folder), program.script)
    trial.found = [(rule, line) for rule, line in trial.found if rule not in program.true]
    trial.placed = trial.placed and bool(trial.found)
    described = {key: one[key] for key in ("half", "kind", "mistake")}
    return described | {"operator": one["kind"], "program": program.name, "line": min(lines)} | vars(trial)


def _digest(program: Public) -> str:
    with _copied(program) as script:
        return digest(script, script.parent)


def _read(folder: Path, one: dict[str, Any]) -> Public:
    path = folder / one["name"] / one.get("planted", one["script"])
    return Public(
        path=path.resolve(),
        title=one["name"],
        field=one["field"],
        folder=(folder / one["name"]).resolve(),
        script=one["script"],
        true=tuple(one.get("true", ())),
    )


def _chosen(programs: list[Public], only: str, most: int) -> Iterator[tuple[Public, Mutant]]:
    """Yield the first mutant of each operator in some programs, in an order that is drawn once for all runs."""
    for name in [name for name in only.split(",") if name] or sorted(OPERATORS):
        found = [(one, mutant) for one in programs for mutant in islice(mutants(one.source, name), 1)]
        found.sort(key=lambda pair: hashlib.sha256(f"{name} {pair[0].name}".encode()).digest())
        yield from found[:most]


def _row(program: Public, mutant: Mutant, original: str, keep: Path | None) -> dict[str, Any]:
    planted = str(program.path.relative_to(program.folder))
    silent = OPERATORS[mutant.operator].silent
    trial = Trial(False, "its program does not run alone")
    if original not in ("", "slow"):
        trial = run(mutant.text, planted, original, mutant.scope, silent, program.folder, program.script)
    trial.found = [(rule, line) for rule, line in trial.found if rule not in program.true]
    trial.placed = trial.placed and bool(trial.found)
    if keep is not None and trial.valid and not trial.found and program.half == "open":
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{mutant.operator}--{program.name}.py").write_text(mutant.text, encoding="utf-8")
    return {
        "operator": mutant.operator,
        "half of operator": half(mutant.operator),
        "program": program.name,
        "field": program.field,
        "line": mutant.line,
        "style": program.style,
        "loader": program.loader,
        "half": program.half,
    } | vars(trial)


def _shown(row: dict[str, Any]) -> str:
    place = f"{row['operator']} {row['program']}:{row['line']}"
    if not row["valid"]:
        return f"  - {place}: {row['why']}"
    if row["half"] == "aside":
        return f"  {'+' if row['found'] else '!'} {row['operator']} in a program kept aside"
    found = ", ".join(f"{rule}:{line}" for rule, line in row["found"]) or f"nothing ({', '.join(row['low'])})"
    return (
        f"  {'+' if row['placed'] else '~' if row['found'] else '!'} {place}: {found} {' '.join(row['errors'])[-200:]}"
    )


if __name__ == "__main__":
    main()
