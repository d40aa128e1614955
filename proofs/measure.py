"""Measure the harm of every proof: run `bad.py` and `good.py` over their seeds, unsupervised, and compare the results."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).resolve().parent
MEASURED = "[measured]"


@dataclass(frozen=True)
class Measurement:
    """Results of the two programs of one proof, and whether the difference exceeds the stated margin."""

    proof: str
    better: str
    margin: float
    bad: list[float]
    good: list[float]

    @property
    def harm(self) -> float:
        difference = fmean(self.good) - fmean(self.bad)
        return difference if self.better == "higher" else -difference

    @property
    def holds(self) -> bool:
        return self.harm > self.margin


def result(program: Path, seed: int) -> float:
    done = subprocess.run([sys.executable, str(program), str(seed)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} with seed {seed} ended with {done.returncode}\n{done.stderr}")
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("result: "):
        raise SystemExit(f"{program} with seed {seed}: the last line is not `result: <number>`")
    return float(lines[-1].removeprefix("result: "))


def measure(folder: Path) -> Measurement:
    proof = tomllib.loads((folder / "proof.toml").read_text(encoding="utf-8"))
    bad, good = ([result(folder / name, seed) for seed in proof["seeds"]] for name in ("bad.py", "good.py"))
    return Measurement(folder.relative_to(HERE).as_posix(), proof["better"], proof["margin"], bad, good)


def write(folder: Path, measured: Measurement) -> None:
    path = folder / "proof.toml"
    version = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__.split('+')[0])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    table = [MEASURED, f'torch = "{version}"', f"bad = {measured.bad}", f"good = {measured.good}"]
    stated = path.read_text(encoding="utf-8").partition(MEASURED)[0].rstrip()
    path.write_text("\n".join([stated, "", *table, ""]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rules", nargs="*", help="rule ids, or folders below them; all folders with a proof.toml when none is given"
    )
    parser.add_argument("--write", action="store_true", help="store the numbers in the [measured] table of proof.toml")
    arguments = parser.parse_args()
    folders = [HERE / rule for rule in arguments.rules] or sorted(path.parent for path in HERE.glob("**/proof.toml"))
    print(f"{'rule':36} {'bad':>10} {'good':>10} {'harm':>10} {'margin':>10}  ok")
    ok = True
    for folder in folders:
        measured = measure(folder)
        ok &= measured.holds
        numbers = (fmean(measured.bad), fmean(measured.good), measured.harm, measured.margin)
        print(
            measured.proof.ljust(36), *(f"{n:10.4f}" for n in numbers), " yes" if measured.holds else " NO", flush=True
        )
        if arguments.write:
            write(folder, measured)
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
