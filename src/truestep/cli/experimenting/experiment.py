"""Options, bench and pictures shared by the commands that run a script several times."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from truestep.errors import NoExperiment, UnwritableFolder, UsageError
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Variant
from truestep.experiments.running.outcome_cache import OutcomeCache
from truestep.supervision.launching.program import Target, prepare

if TYPE_CHECKING:
    from truestep.report.page.experiment_page import ExperimentPage

Script = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="Path of the script; with -m, a module name.", show_default=False)
]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")]
Module = Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")]
Limit = Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Seconds after which a run is stopped.")]
Memory = Annotated[
    float | None, typer.Option(min=0.1, metavar="GIB", help="Memory above which a run is stopped.", show_default=False)
]
Processes = Annotated[
    int, typer.Option("--nproc-per-node", min=1, metavar="N", help="Processes per run, started as by torchrun.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run everything again; ignore cached runs.")]
Format = Annotated[Literal["text", "json"], typer.Option(help="Format of the report.")]
PageFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write the result as an HTML page to this file.", show_default=False),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Write a picture to this .svg or .png file.", show_default=False),
]


def bench_of(
    script: str,
    arguments: list[str] | None,
    module: bool,
    *,
    steps: int | None,
    limit: float,
    memory: float | None = None,
    processes: int = 1,
    fresh: bool | None = None,
) -> Bench:
    """Return the bench that runs variants of a script.

    Args:
        script: path of the script, or name of a module.
        arguments: arguments of the script.
        module: True if `script` is the name of a module.
        steps: number of optimizer steps after which a run ends.
        limit: most seconds per run.
        memory: most GiB of memory per run.
        processes: number of processes per run.
        fresh: True to ignore cached outcomes of earlier commands; None to use no cache at all.

    Raises:
        UsageError: the script does not exist, or this process is one of several.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
        raise UsageError(
            f"this is one of {os.environ['WORLD_SIZE']} processes that were started together",
            expected="expected one process: an experiment starts the processes of the script itself",
            remedy="run it without torchrun, with --nproc-per-node",
        )
    target = Target(script, tuple(arguments or ()), module)
    prepare(target)
    cache = None if fresh is None else OutcomeCache(fresh=fresh)
    limit_bytes = None if memory is None else int(memory * 2**30)
    return Bench(target, steps, limit, limit_bytes, processes, cache=cache, begins=_RunProgress())


@contextmanager
def explained(bench: Bench) -> Iterator[None]:
    """Context manager: print the script's output if the experiment fails, and how many runs came from the cache."""
    try:
        yield
    except NoExperiment as error:
        if error.said:
            sys.stderr.write(error.said.rstrip() + "\n\n")
        raise
    finally:
        if bench.cache is not None and bench.cache.used:
            runs = "1 run was" if bench.cache.used == 1 else f"{bench.cache.used} runs were"
            sys.stderr.write(f"{runs} taken from the cache; --fresh runs them again\n\n")


class _RunProgress:
    """Prints a line on standard error for each run that begins, with the time passed."""

    def __init__(self) -> None:
        self._runs = 0
        self._begun = time.monotonic()

    def __call__(self, variant: Variant) -> None:
        self._runs += 1
        passed = int(time.monotonic() - self._begun)
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{passed // 60}:{passed % 60:02} run {self._runs}: {variant.name}\n")
            sys.stderr.flush()


def check_page(path: Path | None) -> None:
    """Check the file of a page before the runs, so that these do not end in an error about it.

    Raises:
        PackageMissing: Jinja2 is not installed.
        UnwritableFolder: the file is a folder.
    """
    if path is None:
        return
    from truestep.report.page.write_page import needs

    needs()
    if path.is_dir():
        raise UnwritableFolder(
            f"the page cannot be written to {path}",
            expected="expected a file, got a folder",
            remedy="give a file with --report",
        )


def write_page(path: Path | None, page: Callable[[str], ExperimentPage], target: Target) -> None:
    """Write the page of an experiment, and say so on standard error.

    Args:
        path: file to write; None writes nothing.
        page: makes the page from the command as typed.
        target: the script.
    """
    if path is None:
        return
    from truestep.report.page.experiment_page import write_experiment

    words = [*(["-m"] if target.module else []), target.name, *target.arguments]
    sys.stderr.write(f"truestep: {write_experiment(page(shlex.join(words)), path)}\n")


def write_picture(path: Path, svg: str) -> None:
    """Write a picture in the format of the file's suffix: .svg, or .png at twice the size.

    Args:
        path: file to write.
        svg: the picture as SVG.

    Raises:
        UsageError: the name has another suffix, or resvg-py, which makes PNGs, is not installed.
        UnwritableFolder: the file cannot be written.
    """
    content = svg.encode() if check_picture(path) == ".svg" else _png(svg)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UnwritableFolder(
            f"the picture cannot be written to {path}",
            expected=f"expected a file that can be written, got: {error.strerror or error}",
            remedy="give another one with --picture",
        ) from None


def check_picture(path: Path) -> str:
    """Return the suffix of a picture's name, in lower case.

    Raises:
        UsageError: the suffix is neither .svg nor .png, or resvg-py, which makes PNGs, is not installed.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise UsageError(
            f"--picture must end in .svg or .png, got {path.name}",
            remedy=f"write --picture {path.stem or 'curve'}.svg",
        )
    if kind == ".png":
        _resvg()
    return kind


def _png(svg: str) -> bytes:
    return bytes(_resvg().svg_to_bytes(svg_string=svg, zoom=2))


def _resvg() -> Any:
    try:
        import resvg_py
    except ImportError:
        raise UsageError(
            "a PNG cannot be made: resvg-py is not installed",
            expected="expected the extra that draws PNGs, or a name that ends in .svg",
            remedy="pip install 'truestep[pictures]'",
        ) from None
    return resvg_py
