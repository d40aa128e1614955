"""What the commands share that run a script several times: options, the bench, pictures."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from truestep.errors import NoExperiment, UnwritableFolder, UsageError
from truestep.experiments.bench import Bench
from truestep.experiments.kept import Kept
from truestep.experiments.outcome import Variant
from truestep.watch.program import Target, prepare

Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="What to run; with -m, a module.", show_default=False)]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="The script's own.")]
Module = Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")]
Limit = Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Seconds after which a run is ended.")]
Memory = Annotated[
    float | None, typer.Option(min=0.1, metavar="GIB", help="Memory over which a run is ended.", show_default=False)
]
Processes = Annotated[
    int, typer.Option("--nproc-per-node", min=1, metavar="N", help="Processes of a run, as torchrun starts them.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run again what was run before.")]
Format = Annotated[Literal["text", "json"], typer.Option(help="Form of the report.")]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Picture of it: .svg or .png.", show_default=False),
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
    """Return where variants of a script run.

    Args:
        script: its path, or the name of a module.
        arguments: its own.
        module: whether it is a module.
        steps: after how many steps of its optimizers a run ends.
        limit: seconds for a run.
        memory: GiB for a run.
        processes: of a run.
        fresh: whether outcomes of earlier commands are passed over; None to keep none at all.

    Raises:
        UsageError: there is no such script, or this process is one of several.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
        raise UsageError(
            f"this is one of {os.environ['WORLD_SIZE']} processes that were started together",
            expected="one process: an experiment starts those of the script itself",
            remedy="run it without torchrun, with --nproc-per-node",
        )
    target = Target(script, tuple(arguments or ()), module)
    prepare(target)
    kept = None if fresh is None else Kept(fresh=fresh)
    limit_bytes = None if memory is None else int(memory * 2**30)
    return Bench(target, steps, limit, limit_bytes, processes, kept=kept, begins=_Told())


@contextmanager
def explained(bench: Bench) -> Iterator[None]:
    """Print what the script wrote where it did not do what is compared; and how many runs were not run again."""
    try:
        yield
    except NoExperiment as error:
        if error.said:
            sys.stderr.write(error.said.rstrip() + "\n\n")
        raise
    finally:
        if bench.kept is not None and bench.kept.used:
            runs = "1 run was" if bench.kept.used == 1 else f"{bench.kept.used} runs were"
            sys.stderr.write(f"{runs} kept from before; --fresh runs them again\n\n")


class _Told:
    """Says on standard error which run begins, and when."""

    def __init__(self) -> None:
        self._runs = 0
        self._begun = time.monotonic()

    def __call__(self, variant: Variant) -> None:
        self._runs += 1
        passed = int(time.monotonic() - self._begun)
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{passed // 60}:{passed % 60:02} run {self._runs}: {variant.name}\n")
            sys.stderr.flush()


def write_picture(path: Path, svg: str) -> None:
    """Write a picture as what its name ends in: .svg, or .png at twice the size.

    Args:
        path: where to.
        svg: the picture.

    Raises:
        UsageError: the name ends in something else, or what makes a PNG is not installed.
        UnwritableFolder: the file cannot be written.
    """
    content = svg.encode() if check_picture(path) == ".svg" else _png(svg)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UnwritableFolder(
            f"the picture cannot be written to {path}",
            expected=f"a file that can be written; got: {error.strerror or error}",
            remedy="give another one with --picture",
        ) from None


def check_picture(path: Path) -> str:
    """Return how the name of a picture ends.

    Raises:
        UsageError: no picture can be made for it.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise UsageError(
            f"{path.name} names no kind of picture",
            expected="a name that ends in .svg or .png",
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
            expected="the extra that draws PNGs, or a picture whose name ends in .svg",
            remedy="pip install 'truestep[pictures]'",
        ) from None
    return resvg_py
