"""Plant one mistake in each of many healthy programs, and count how many TrueStep finds.

    make mutants                                  a sample: about six minutes on two cores without other work
    make mutants ARGS="--per-operator 4"          a smaller one: two and a half minutes
    make mutants ARGS="--list"                    the operators
    make mutants ARGS="--only drop-eval --show"   one operator, with the findings of each mutant
    make mutants ARGS="--from FOLDER"             programs of a folder in place of those of the project

A mutant counts if it runs to its end and trains other weights or prints another result than its program. Operators
that cost time or memory and change no number count without the second condition. docs/reference/mutants.md
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "mutants.json"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TRUESTEP_WATCH", "0")
sys.path.append(str(ROOT / "tests" / "support"))

import builds  # noqa: E402, F401
import drops  # noqa: E402, F401
import moves  # noqa: E402, F401
import swaps  # noqa: E402, F401
import warm  # noqa: E402
from healthy import Program, half, programs  # noqa: E402
from operators import OPERATORS, Mutant, mutants  # noqa: E402
from score import summary, table  # noqa: E402
from trial import digest, run  # noqa: E402


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-operator", type=int, default=10, help="largest number of mutants of an operator")
    parser.add_argument("--only", default="", help="operators, with commas between")
    parser.add_argument("--programs", default="", help="parts of paths of programs, with commas between")
    parser.add_argument("--from", dest="folder", type=Path, help="folder of other programs")
    parser.add_argument("--half", choices=["open", "aside"], help="programs of one half only")
    parser.add_argument("--list", action="store_true", help="print the operators, with their numbers of programs")
    parser.add_argument("--show", action="store_true", help="print each mutant with its findings")
    parser.add_argument("--keep", type=Path, help="folder to write the mutants into that were not found")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    if options.list:
        for name, found in _places(options).items():
            print(f"{name:30} {len(found):4}  {OPERATORS[name].mistake}")
        return
    warm.install()
    chosen = _chosen(options)
    print(f"{len(chosen)} mutants of {len({program.path for program, _ in chosen})} programs", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        paths = sorted({program.path for program, _ in chosen})
        originals = dict(zip(paths, pool.map(digest, paths), strict=True))
        rows = []
        for row in pool.map(lambda one: _row(*one, originals[one[0].path], options.keep), chosen):
            rows.append(row)
            if options.show:
                print(_shown(row), flush=True)
    scores = summary(rows)
    print(table(scores))
    if options.save:
        misses = [_place(row) for row in rows if row["valid"] and not row["found"] and row["half"] == "open"]
        RESULTS.write_text(json.dumps({"scores": scores, "not found, open half": misses}, indent=1) + "\n")


def _chosen(options: argparse.Namespace) -> list[tuple[Program, Mutant]]:
    """Return the sample: the first mutants of each operator in an order that is drawn once for all runs."""
    chosen = []
    for name, found in _places(options).items():
        found.sort(key=lambda one: hashlib.sha256(f"{name} {one[0].name}".encode()).digest())
        chosen += found[: options.per_operator]
    return chosen


def _places(options: argparse.Namespace) -> dict[str, list[tuple[Program, Mutant]]]:
    """Return the programs of each operator, with its first mutant: programs differ in style, places in one do not."""
    wanted = [name for name in options.only.split(",") if name]
    unknown = sorted(set(wanted) - set(OPERATORS))
    if unknown:
        raise SystemExit(f"--only: no operator is named {unknown[0]}; there are {', '.join(sorted(OPERATORS))}")
    parts = [part for part in options.programs.split(",") if part]
    all_programs = [Program(path) for path in sorted(options.folder.rglob("*.py"))] if options.folder else programs()
    chosen = [
        program
        for program in all_programs
        if (not parts or any(part in program.name for part in parts)) and options.half in (None, program.half)
    ]
    return {
        name: [(program, mutant) for program in chosen for mutant in islice(mutants(program.source, name), 1)]
        for name in wanted or sorted(OPERATORS)
    }


def _row(program: Program, mutant: Mutant, original: str, keep: Path | None) -> dict[str, Any]:
    silent = OPERATORS[mutant.operator].silent
    if original in ("", "slow"):
        return _base(program, mutant) | {
            "valid": False,
            "why": "its program does not run alone",
            "found": [],
            "placed": False,
        }
    trial = run(mutant.text, program.path.name, original, mutant.scope, silent)
    if keep is not None and trial.valid and not trial.found:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{mutant.operator}--{program.path.parent.name}-{program.path.name}").write_text(mutant.text)
    return _base(program, mutant) | vars(trial)


def _base(program: Program, mutant: Mutant) -> dict[str, Any]:
    return {
        "operator": mutant.operator,
        "half of operator": half(mutant.operator),
        "program": program.name,
        "line": mutant.line,
        "style": program.style,
        "loader": program.loader,
        "half": program.half,
    }


def _place(row: dict[str, Any]) -> str:
    return f"{row['operator']} {row['program']}:{row['line']}"


def _shown(row: dict[str, Any]) -> str:
    if not row["valid"]:
        return f"  - {_place(row)}: {row['why']}"
    found = (
        ", ".join(f"{rule}:{line}" for rule, line in row["found"])
        or f"nothing ({', '.join(row['low']) or 'no low one'})"
    )
    sign = "+" if row["placed"] else "~" if row["found"] else "!"
    return f"  {sign} {_place(row)}: {found} {' '.join(row['errors'])[-200:]}"


if __name__ == "__main__":
    main()
