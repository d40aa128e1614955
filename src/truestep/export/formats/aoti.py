"""Code compiled for this machine by AOTInductor, for `torch._inductor.aoti_load_package` and for C++."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import torch

from truestep.errors import PackageMissing
from truestep.export.formats import Loaded, Source

TRACED = True


def require() -> None:
    """Raise an error without a C++ compiler.

    Raises:
        PackageMissing: no compiler was found.
    """
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None and shutil.which("clang++") is None:
        raise PackageMissing(
            f"AOTInductor needs a C++ compiler, and {compiler} is not installed",
            expected="expected g++, clang++ or the program named by CXX",
            remedy="install g++ with the packages of the system, or export to pt2",
        )


def write(source: Source, path: Path) -> None:
    """Compile the graph, and write the code with the weights."""
    assert source.program is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch on its own code
        torch._inductor.aoti_compile_and_package(source.program, package_path=str(path))


def load(path: Path) -> tuple[Loaded, str]:
    """Return a function that calls the written model, and the name and version of its runtime."""
    module = torch._inductor.aoti_load_package(str(path))
    return lambda args, kwargs: module(*args, **kwargs), f"AOTInductor of torch {torch.__version__}"
