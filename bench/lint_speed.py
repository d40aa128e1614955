"""Files per second of `truestep lint` on one core, over installed packages: one table.

The files are those of `site-packages`, or of the folders that are named. Each is read, parsed and checked by all rules
that read the syntax, without a cache. The time is that of the processor, since a busy machine slows the wall clock. The
share of `ast.parse`, measured apart on the files with training code, shows how much the rules add. The best of several
rounds counts: another process on the same core slows the processor's clock too. Lines a second compare packages with
long and short files. Of all packages, a sample of files is checked, the same in each run. Needs no torch.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import random
import sysconfig
import time
import warnings
from pathlib import Path

from truestep.lint.checking import check
from truestep.lint.discovery import files
from truestep.lint.engine import Code, inspecting, read_code
from truestep.lint.reading import matters

RESULTS = Path(__file__).parent / "results" / "lint_speed.json"
PACKAGES = ("lightning", "accelerate", "ignite", "skorch", "sklearn")


def _parse(codes: list[Code]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code in codes:
            try:
                ast.parse(code.text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


def measured(paths: list[Path], rounds: int) -> dict[str, float]:
    """Return the number of files, and the times that they take."""
    codes = [code for code in map(read_code, paths) if isinstance(code, Code)]
    relevant = [code for code in codes if matters(code.text)]
    parsed = total = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        _parse(relevant)
        parsed, started = min(parsed, time.process_time() - started), time.process_time()
        results = check(map(read_code, paths), tuple(inspecting().values()))
        total = min(total, time.process_time() - started)
    lines = sum(code.text.count("\n") for code in codes)
    return {
        "files": len(paths),
        "relevant": len(relevant),
        "lines": lines,
        "seconds": total,
        "parse_seconds": parsed,
        "findings": len(results.shown()),
        "not_checked": len(results.problems),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folders", nargs="*", type=Path)
    options.add_argument("--sample", type=int, default=2000, help="largest number of files of all packages")
    options.add_argument("--rounds", type=int, default=5, help="the best of these counts")
    options.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    arguments = options.parse_args()
    site = Path(sysconfig.get_path("purelib"))
    folders = arguments.folders or [site / name for name in PACKAGES if (site / name).is_dir()]
    if not arguments.folders:
        folders.append(site)
    inspecting()
    found = {}
    heads = ("files", "with torch", "lines", "files/s", "lines/s", "ast.parse", "findings")
    print(f"{'folder':16}" + "".join(f"{head:>11}" for head in heads))
    for folder in folders:
        paths = list(files([folder]))
        if folder == site and len(paths) > arguments.sample:
            paths = random.Random(0).sample(paths, arguments.sample)
        one = measured(paths, arguments.rounds)
        name = "all packages" if folder == site else folder.name
        seconds = one["seconds"]
        found[name] = one | {"files_per_second": one["files"] / seconds, "lines_per_second": one["lines"] / seconds}
        cells = [f"{one[name]:.0f}" for name in ("files", "relevant", "lines")]
        cells += [f"{one[name] / seconds:.0f}" for name in ("files", "lines")]
        cells += [f"{one['parse_seconds'] / seconds:.0%}", f"{one['findings']:.0f}"]
        print(f"{name:16}" + "".join(f"{cell:>11}" for cell in cells), flush=True)
    if arguments.save:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
        RESULTS.write_text(json.dumps({"machine": machine, "folders": found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
