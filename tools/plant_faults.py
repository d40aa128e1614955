"""Count how many planted faults a selection of tests notices.

    python tools/plant_faults.py map FOLDER --faults 200 --seed 0
    python tools/plant_faults.py plant FOLDER

Each fault is one change of one line in a function of src: an operator swapped, a condition negated, a number changed, a
statement deleted. `map` chooses the lines, marks them in a copy of the tree in FOLDER and runs the selection there
once. It writes which test reaches which line, from every process that the test starts, and the processor time of each
test. `plant` plants one fault at a time and runs the tests that reach it, those of its room and name first, then the
fastest, until one fails; then ruff and mypy, which `make test` runs as well. Both can be stopped and go on, and `plant`
can begin while `map` runs: faults that were noticed are not planted again, and tests that passed are not repeated.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from faults import marks
from faults.planting import MARKS, Fault, faults, mark

ROOT = Path(__file__).resolve().parents[1]
SELECTION = "-m 'not slow and not program'"
LEFT_OUT = ("templates/", "exercises/planted/", "exercises/written/")
"""Programs for users, which are not imported."""
STYLE = "E501,PIE790,RUF021,SIM208"
"""What ruff says of the form of a planted fault: a long line, `pass` for a statement, `a or b and c`, `not (not a)`."""
CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: processes that a test leaves behind are children of this one."""


def copied(folder: Path) -> Path:
    """Copy the files that git tracks, and untracked ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def environment(tree: Path) -> dict[str, str]:
    """Return the environment of tests in a tree."""
    data = {"TRUESTEP_DATA": os.environ.get("TRUESTEP_DATA", str(ROOT.parent / "shared" / "data"))}
    places = os.pathsep.join([str(tree / "src"), str(Path(__file__).parent)])
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return inherited | data | {"PYTHONPATH": places}


def draw_map(folder: Path, chosen: argparse.Namespace) -> None:
    """Mark the lines of random faults and run the selection."""
    if (folder / "faults.pickle").exists():
        run_marked(folder, chosen.tests)
        return
    tree = copied(folder / "marked")
    files = [file for place in chosen.among for file in sorted((tree / place).rglob("*.py")) or [tree / place]]
    files = [file for file in files if not any(one in file.as_posix() for one in LEFT_OUT)]
    planted = faults(tree, files, chosen.faults, chosen.seed)
    (folder / "faults.pickle").write_bytes(pickle.dumps(planted))
    mark(tree, planted)
    shutil.copy2(marks.__file__, tree / "src" / f"{MARKS}.py")
    print(f"{len(planted)} faults, {len(files)} files", flush=True)
    run_marked(folder, chosen.tests)


def run_marked(folder: Path, tests: str) -> None:
    """Run the selection on the marked tree; tests that were run before are left out."""
    tree = folder / "marked"
    program = (
        f"import pytest, sys; from pathlib import Path; from faults.reached import Reached; "
        f"sys.exit(pytest.main(sys.argv[1:], plugins=[Reached(Path({str(folder / 'tests.jsonl')!r}))]))"
    )
    arguments = ["-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", *shlex.split(tests)]
    subprocess.run([sys.executable, "-c", program, *arguments], cwd=tree, env=environment(tree), check=False)


def linted(tree: Path, fault: Fault) -> str:
    """Return the linter that notices a fault, or "" if none does."""
    name = fault.file
    for command in (
        ["ruff", "check", "-q", "--extend-ignore", STYLE, name],
        ["mypy", "--cache-dir", str(tree.parent / "mypy"), "src"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=tree, capture_output=True, check=False)
        if done.returncode:
            return command[0]
    return ""


def plant(folder: Path, chosen: argparse.Namespace) -> None:
    """Plant the faults of a map and print which are noticed."""
    sys.path[:] = [one for one in sys.path if not one.endswith("/src")]
    import torch._dynamo  # noqa: F401 # before the forks
    from faults.selection import Map, noticed

    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1)
    tree = folder / "planted"
    if not tree.exists():
        copied(tree)
    planted: list[Fault] = pickle.loads((folder / "faults.pickle").read_bytes())
    results = folder / "results.json"
    before: dict[str, Any] = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    for fault in planted:
        row = before.setdefault(str(fault.number), {"by": "", "passed": []})
        if row["by"] or not any(fault.file.startswith(place) for place in chosen.among):
            continue
        found = Map.read(folder / "tests.jsonl", folder / "marked" / "src" / "hits.txt")
        reaching = found.tests(fault.number, fault.file)
        rest, seconds = [], 0.0
        for test in reaching:
            if test not in row["passed"] and seconds < chosen.seconds:
                rest.append(test)
                seconds += found.seconds[test]
        file = tree / fault.file
        original, times = file.read_bytes(), file.stat()
        file.write_text(fault.changed, encoding="utf-8")
        os.utime(file, (times.st_atime, times.st_mtime - 3600 - 10 * fault.number))  # another one: so is the bytecode
        try:
            if rest:
                row["by"], run = noticed(tree, rest, 60 + 10 * seconds)
                row["passed"] += [] if row["by"] else rest[:run]
            if not row["by"] and "linted" not in row and not chosen.without_lint:
                row["by"], row["linted"] = linted(tree, fault), True
        finally:
            file.write_bytes(original)
            os.utime(file, (times.st_atime, times.st_mtime))
        row |= {"at": f"{fault.file}:{fault.line}", "name": fault.name, "line": fault.before, "reaching": len(reaching)}
        results.write_text(json.dumps(before, indent=1), encoding="utf-8")
        known = f"NOT NOTICED by {len(row['passed'])} of {len(reaching)} tests"
        print(f"{fault.number} {row['at']}: {fault.name}: {row['by'] or known}", flush=True)
    print(f"{sum(bool(row['by']) for row in before.values())} of {len(planted)} noticed")


def main() -> None:
    """Draw the map, or plant the faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("map", help="run the selection once on a marked tree")
    first.add_argument("folder", type=Path)
    first.add_argument("--faults", type=int, default=20)
    first.add_argument("--seed", type=int, default=0)
    first.add_argument("--among", nargs="+", type=Path, default=[Path("src/truestep")])
    first.add_argument("--tests", default=SELECTION, help=f"arguments of pytest; {SELECTION!r} if not given")
    first.set_defaults(call=draw_map)
    second = commands.add_parser("plant", help="plant each fault and run the tests that reach it")
    second.add_argument("folder", type=Path)
    second.add_argument("--seconds", type=float, default=60, help="processor seconds of tests for a fault")
    second.add_argument("--among", nargs="+", default=["src/truestep"], help="only faults in these folders")
    second.add_argument("--without-lint", action="store_true", help="leave out ruff and mypy")
    second.set_defaults(call=plant)
    chosen = parser.parse_args()
    chosen.call(chosen.folder.resolve(), chosen)


if __name__ == "__main__":
    main()
