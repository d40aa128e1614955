"""A rule's proof: two complete programs, and their results over the same seeds."""

from __future__ import annotations

import difflib
import importlib.util
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from truestep.errors import TorchMissing, UsageError

_MARK = re.compile(r"\s*# error:\s*(?P<rules>[\w, -]+)$")


@dataclass(frozen=True, slots=True)
class ProofProgram:
    """One of the two programs. ``marked`` holds line numbers from 1: the guilty lines, or the changed ones."""

    path: Path
    lines: tuple[str, ...]
    marked: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """The contents of proof.toml: the claim, and the numbers that were measured."""

    folder: Path
    better: str
    """"higher" or "lower"."""
    margin: float
    """The harm must exceed this."""
    seeds: tuple[int, ...]
    metric: str = ""
    """Name of the number that the programs print."""
    says: str = ""
    """Description of the harm."""
    torch: str = ""
    """The version of torch that the stored numbers were measured with."""
    bad: tuple[float, ...] = ()
    good: tuple[float, ...] = ()

    def harm(self, bad: tuple[float, ...], good: tuple[float, ...]) -> float:
        """Return by how much the mean result of the bad program is worse."""
        difference = fmean(good) - fmean(bad)
        return difference if self.better == "higher" else -difference


def find(rule: str) -> Path | None:
    """Return the folder of a rule's proof, in the repository or in the installed package."""
    package = Path(__file__).resolve().parent.parent
    places = (package / "_proofs", package.parent.parent / "proofs")
    return next((place / rule for place in places if (place / rule / "bad.py").is_file()), None)


def load(folder: Path) -> Proof | None:
    """Return the proof in a folder, or None if it has no proof.toml."""
    path = folder / "proof.toml"
    if not path.is_file():
        return None
    stated = tomllib.loads(path.read_text(encoding="utf-8"))
    measured = stated.get("measured", {})
    return Proof(
        folder=folder,
        better=stated["better"],
        margin=float(stated["margin"]),
        seeds=tuple(stated["seeds"]),
        metric=str(stated.get("metric", "")),
        says=str(stated.get("harm", "")),
        torch=str(measured.get("torch", "")),
        bad=tuple(map(float, measured.get("bad", ()))),
        good=tuple(map(float, measured.get("good", ()))),
    )


def programs(folder: Path) -> tuple[ProofProgram, ProofProgram]:
    """Return the bad program with its guilty lines, and the good one with the lines that differ."""
    bad = (folder / "bad.py").read_text(encoding="utf-8").splitlines()
    good = (folder / "good.py").read_text(encoding="utf-8").splitlines()
    guilty = tuple(number for number, line in enumerate(bad, start=1) if _MARK.search(line))
    bare = [_MARK.sub("", line) for line in bad]
    changed: list[int] = []
    for kind, _, _, first, last in difflib.SequenceMatcher(a=bare, b=good, autojunk=False).get_opcodes():
        if kind in {"replace", "insert"}:
            changed.extend(range(first + 1, last + 1))
    return (
        ProofProgram(folder / "bad.py", tuple(bare), guilty),
        ProofProgram(folder / "good.py", tuple(good), tuple(changed)),
    )


def run(proof: Proof) -> Iterator[tuple[int, float, float]]:
    """Run both programs over the seeds, each in a separate process, and yield (seed, bad result, good result).

    Raises:
        TorchMissing: torch is not installed.
        UsageError: a program failed or printed no result.
    """
    if importlib.util.find_spec("torch") is None:
        raise TorchMissing("the proof is a PyTorch program, and torch is not installed", remedy="pip install torch")
    for seed in proof.seeds:
        yield seed, _result(proof.folder / "bad.py", seed), _result(proof.folder / "good.py", seed)


def _result(program: Path, seed: int) -> float:
    with tempfile.TemporaryDirectory(prefix="truestep-proof-") as folder:
        command = [sys.executable, str(program), str(seed)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        if done.returncode:
            raise ValueError
        return float(last.removeprefix("result: "))
    except ValueError:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise UsageError(
            f"{program.parent.name}/{program.name} gave no result for seed {seed}",
            expected=f'expected "result: NUMBER" and exit code 0, got exit code {done.returncode}: {said}',
            remedy=f"run it by hand: python {program} {seed}",
        ) from None
