"""The compiler that torch.compile calls, tested on a file with two includes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

from truestep.doctor.facts import Compiler

_PATIENCE_S = 20
_PROGRAM = """#include <Python.h>
#include <omp.h>
#include <cmath>
int main() { return omp_get_max_threads() > 0 ? 0 : 1; }
"""


def compiler() -> Compiler:
    """Return the C++ compiler that torch.compile uses for the CPU, with its test, and triton for GPUs.

    torch takes the program named by the variable CXX (a single name: "ccache g++" does not work), else g++, clang++ on
    macOS and cl on Windows.
    """
    triton = _triton()
    name = os.environ.get("CXX", {"win32": "cl", "darwin": "clang++"}.get(sys.platform, "g++"))
    path = shutil.which(name)
    if path is None:
        why = f'CXX is "{name}", but no program has that name' if "CXX" in os.environ else None
        return Compiler(failure=why, triton=triton)
    version, failure = _asked([path, "--version"])
    if sys.platform == "linux" and not failure:
        failure = _tried(path)
    return Compiler(path=path, version=_number(version), failure=failure, triton=triton)


def _tried(path: str) -> str | None:
    """Return the reason why a small program cannot be built; None if it can."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "small.cpp")
        source.write_text(_PROGRAM, encoding="utf-8")
        include = f"-I{sysconfig.get_path('include')}"
        _, failure = _asked(
            [path, include, "-std=c++17", "-fopenmp", "-shared", "-fPIC", str(source), "-o", f"{place}/small.so"]
        )
    return failure


def _asked(command: list[str]) -> tuple[str, str | None]:
    """Return the output of a command, and the reason of its failure."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    said = done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")
    return said, None if done.returncode == 0 else _first_error(said)


def _first_error(said: str) -> str:
    """Return the first error in the output of a compiler.

    >>> _first_error("/tmp/a.cpp:1:10: fatal error: Python.h: No such file or directory")
    'Python.h: No such file or directory'
    """
    found = re.search(r"error: *(.+)$", said, re.M)
    return found[1].strip() if found else (said.strip().splitlines() or ["it failed without a message"])[-1]


def _number(said: str) -> str:
    """Return the version in a compiler's first line.

    >>> _number("g++ (Debian 12.2.0-14) 12.2.0"), _number("Apple clang version 15.0.0 (clang-1500)")
    ('12.2.0', '15.0.0')
    """
    first = re.sub(r"\([^)]*\)", "", (said.splitlines() or [""])[0])
    found = re.search(r"\d+(?:\.\d+)+", first)
    return found[0] if found else ""


def _triton() -> str | None:
    for name in (
        "triton",
        "triton-windows",
        "pytorch-triton",
        "pytorch-triton-rocm",
        "pytorch-triton-xpu",
        "triton-rocm",
    ):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
