"""Plant the mistakes of mistakes.toml, which are those of single fields, and count how many TrueStep finds.

    python bench/mutants/mistakes.py                all of them, about three minutes on two cores
    python bench/mutants/mistakes.py --only moco    those of some programs
    python bench/mutants/mistakes.py --aside        the set kept aside, mistakes_aside.toml
    python bench/mutants/mistakes.py --plain        mistakes_plain.toml, in the programs of the folder plain
    python bench/mutants/mistakes.py --ordinary     mistakes_ordinary.toml, in those of the folder ordinary
    python bench/mutants/mistakes.py --practice     mistakes_practice.toml, in those of the folder practice
    python bench/mutants/mistakes.py --mixed        mistakes_mixed.toml, in those of the folder mixed
    python bench/mutants/mistakes.py --functional   mistakes_functional.toml, in those of the folder functional
    python bench/mutants/mistakes.py --issues       mistakes_issues.toml, in those of the folder issues
    python bench/mutants/mistakes.py --bare         mistakes_bare.toml, in those of the folder bare
    python bench/mutants/mistakes.py --fields       mistakes_fields.toml, in those of the folder fields

They are edits written by hand, in reinforcement learning, adversarial and contrastive training, diffusion, language,
graphs and others, made before it was known which would be found. docs/reference/mutants.md
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
PROGRAMS = ROOT / "tests" / "wild" / "programs"
SETS = {
    "": PROGRAMS,
    "_aside": PROGRAMS,
    "_plain": Path(__file__).with_name("plain"),
    "_ordinary": Path(__file__).with_name("ordinary"),
    "_practice": Path(__file__).with_name("practice"),
    "_mixed": Path(__file__).with_name("mixed"),
    "_functional": Path(__file__).with_name("functional"),
    "_issues": Path(__file__).with_name("issues"),
    "_bare": Path(__file__).with_name("bare"),
    "_fields": Path(__file__).with_name("fields"),
}
"""Folder of the programs of each mistakes*.toml."""
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TRUESTEP_WATCH", "0")
sys.path.append(str(ROOT / "tests" / "support"))

import warm  # noqa: E402
from score import by, share  # noqa: E402
from trial import digest, run  # noqa: E402


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names of programs, with commas between")
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--aside", action="store_true", help="the set that is not read while rules are written")
    sets.add_argument("--plain", action="store_true", help="the set in programs without a loader or a framework")
    sets.add_argument("--ordinary", action="store_true", help="the set of ordinary work, which has two halves")
    sets.add_argument(
        "--practice", action="store_true", help="the set of series, audio, recommendation, boxes and others"
    )
    sets.add_argument("--mixed", action="store_true", help="the set of texts, maps, clicks, faults and others")
    sets.add_argument("--functional", action="store_true", help="the set in programs of functions, without modules")
    sets.add_argument("--issues", action="store_true", help="the set of public issues, which has two halves")
    sets.add_argument("--bare", action="store_true", help="the second set without modules, which has two halves")
    sets.add_argument("--fields", action="store_true", help="the set of losses, masks and data, with two halves")
    parser.add_argument("--half", choices=("open", "aside"), help="one half of a set that has two")
    parser.add_argument("--save", action="store_true", help=f"write the results to {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    halves = options.ordinary or options.issues or options.bare or options.fields
    if options.half and not halves:
        parser.error("--half must be used with --ordinary, --issues, --bare or --fields, the sets with halves")
    warm.install()
    parts = [part for part in options.only.split(",") if part]
    chosen_set = next((name for name in SETS if name and vars(options)[name[1:]]), "")
    listed, folder = Path(__file__).with_name(f"mistakes{chosen_set}.toml"), SETS[chosen_set]
    all_mistakes = tomllib.loads(listed.read_text(encoding="utf-8"))["mistake"]
    chosen = [one for one in all_mistakes if not parts or any(part in one["program"] for part in parts)]
    chosen = [one for one in chosen if options.half in (None, one.get("half"))]
    with ThreadPoolExecutor(options.jobs) as pool:
        paths = sorted({folder / f"{one['program']}.py" for one in chosen})
        originals = dict(zip(paths, pool.map(digest, paths), strict=True))
        rows = []
        for row in pool.map(lambda one: _row(one, folder / f"{one['program']}.py", originals), chosen):
            rows.append(row)
            if not options.aside and row.get("half") != "aside":  # misses are not to be read
                print(_shown(row), flush=True)
    valid = [row for row in rows if row["valid"]]
    scores: dict[str, Any] = {"score": share(valid)}
    if chosen_set:
        scores["kind"] = by(valid, lambda row: row["kind"])
    if halves:
        scores["half"] = by(valid, lambda row: row["half"])
    print(json.dumps(scores, indent=1))
    if options.save:
        (RESULTS / f"{listed.stem}.json").write_text(json.dumps(scores | {"mistakes": rows}, indent=1) + "\n")


def _row(one: dict[str, Any], path: Path, originals: dict[Path, str]) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    changed, lines = text, []
    for edit in one.get("edits", [one]):
        if text.count(edit["old"]) != 1:
            raise SystemExit(
                f"{path.name} must have the text once, has it {text.count(edit['old'])} times: {edit['old']}"
            )
        line = text[: text.index(edit["old"])].count("\n") + 1
        lines += [line, line + edit["old"].count("\n")]
        changed = changed.replace(edit["old"], edit["new"])
    trial = run(changed, path.name, originals[path], (min(lines), max(lines)), silent=False)
    described = {key: text for key, text in one.items() if key not in ("old", "new", "edits")}
    return described | {"line": min(lines)} | vars(trial)


def _shown(row: dict[str, Any]) -> str:
    place = f"{row['program']}:{row['line']} {row['mistake']}"
    if not row["valid"]:
        return f"- {place} ({row['why']})"
    found = ", ".join(f"{rule}:{line}" for rule, line in row["found"]) or f"nothing ({', '.join(row['low'])})"
    return f"{'+' if row['placed'] else '~' if row['found'] else '!'} {place}\n      {found}"


if __name__ == "__main__":
    main()
