"""`truestep lint` beside other linters of PyTorch code: on the broken programs of the proofs, and on other code.

    python bench/lint_peers.py --files FOLDER --torchfix VENV --mldoctor VENV --dslinter VENV [--save]

Each VENV is an environment with one of them (torchfix 0.7, mldoct 1.0, dslinter 2.0 with Python 3.9); one that is not
given is left out. A finding on a broken program is right if its code is about the failure of the proof: CODES says
which codes are. Any finding on other code is only counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "lint_peers.json"
CODES = {
    "mldoctor": {
        "zero_grad": ("missing-zero-grad", "zero-grad-once-per-epoch", "zero-grad-before-step"),
        "Double Softmax": ("softmax-before-cross-entropy",),
        "OOM Sentinel": ("loss-kept-with-graph",),
        "model.eval() was not called": ("eval-mode-missing",),
        "gradient clipping": (),
        "num_workers": (),
    },
    "dslinter": {
        "gradient-clear-pytorch": ("missing-zero-grad", "zero-grad-once-per-epoch", "zero-grad-before-step"),
        "forward-pytorch": ("forward-called-directly",),
        "scaler-missing-scikitlearn": (),
    },
    "torchfix": {"TOR104": ("recomputation-differs",)},
}
"""Rules of TrueStep that are the same failure as a code, or as a message with this part."""
_MLDOCTOR = """
import contextlib, io, json, sys
from mldoctor.linter import lint_script
found = []
for path in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()):
        issues = lint_script(path)
    issues = issues[0] if isinstance(issues, tuple) else issues
    found += [[path, one["message"]] for one in issues]
print(json.dumps(found))
"""
Found = list[tuple[str, str]]
"""File and code or message of each finding."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="folder of other people's Python files")
    for name in CODES:
        parser.add_argument(f"--{name}", type=Path, metavar="VENV", help=f"environment with {name}")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    tools: dict[str, Callable[[list[Path]], Found]] = {"truestep": _truestep}
    runners = {"torchfix": _torchfix, "mldoctor": _mldoctor, "dslinter": _dslinter}
    for name, runner in runners.items():
        venv = getattr(options, name)
        if venv is not None:
            tools[name] = lambda files, runner=runner, venv=venv: runner(venv, files)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        broken = []
        for path in sorted((ROOT / "proofs").glob("*/bad.py")):
            broken.append(Path(folder, f"{path.parent.name}.py"))
            shutil.copy(path, broken[-1])
        others = sorted(options.files.rglob("*.py"))
        for name, tool in tools.items():
            result[name] = _measured(name, tool, broken, others)
            print(name, json.dumps(result[name]), flush=True)
    if options.save:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _measured(name: str, tool: Callable[[list[Path]], Found], broken: list[Path], others: list[Path]) -> dict[str, Any]:
    start = os.times()
    on_broken, middle = tool(broken), os.times()
    on_others, end = tool(others), os.times()
    right = {path for path, code in on_broken if _right(name, code, Path(path).stem)}
    return {
        "proofs": len(broken),
        "findings on proofs": len(on_broken),
        "proofs found": len(right),
        "cpu s on proofs": _cpu(start, middle),
        "files": len(others),
        "findings on files": len(on_others),
        "by code on files": dict(Counter(_short(name, code) for _, code in on_others).most_common()),
        "cpu s on files": _cpu(middle, end),
    }


def _cpu(start: os.times_result, end: os.times_result) -> float:
    """Return the seconds of this process and its children: the clock depends on what else the machine does."""
    return round(sum(getattr(end, part) - getattr(start, part) for part in ("children_user", "children_system")), 1)


def _right(name: str, code: str, rule: str) -> bool:
    if name == "truestep":
        return code == rule
    return any(part in code and rule in rules for part, rules in CODES[name].items())


def _short(name: str, code: str) -> str:
    return next((part for part in CODES.get(name, {}) if part in code), code)


def _run(command: list[str], **more: str) -> str:
    done = subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=False)
    if not done.stdout and done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2000:]}")
    return done.stdout


def _truestep(files: list[Path]) -> Found:
    command = [sys.executable, "-m", "truestep", "lint", "--no-cache", "--format", "json", *map(str, files)]
    found = json.loads(_run(command))["findings"]
    return [(one["primary"]["site"]["path"], one["rule"]) for one in found]


def _torchfix(venv: Path, files: list[Path]) -> Found:
    out = _run([str(venv / "bin" / "torchfix"), "-j", "1", "--select", "ALL", *map(str, files)])
    return re.findall(r"^(.+?\.py):\d+:\d+: (TOR\d+)", out, re.MULTILINE)


def _mldoctor(venv: Path, files: list[Path]) -> Found:
    out = _run([str(venv / "bin" / "python"), "-c", _MLDOCTOR, *map(str, files)])
    return [(path, message) for path, message in json.loads(out)]


def _dslinter(venv: Path, files: list[Path]) -> Found:
    package = next((venv / "lib").glob("python*/site-packages/dslinter/checkers"))
    text = "".join(path.read_text(encoding="utf-8") for path in package.glob("*.py"))
    names = sorted(set(re.findall(r'^\s+"([a-z-]+-(?:pytorch|scikitlearn|numpy|pandas))",$', text, re.MULTILINE)))
    command = [str(venv / "bin" / "pylint"), "--load-plugins=dslinter", "--disable=all", f"--enable={','.join(names)}"]
    command += ["--output-format=json", "-j", "1", *map(str, files)]
    return [(one["path"], one["symbol"]) for one in json.loads(_run(command) or "[]")]


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
