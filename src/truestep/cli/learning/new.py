"""``truestep new``: write a training program to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truestep import templates
from truestep.cli.shell import completion
from truestep.errors import FileExists, UnwritableFolder
from truestep.report.color import console as colored_console


def new(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Its name; leave it out to list all.",
            autocompletion=completion.templates,
            show_default=False,
        ),
    ] = None,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file to write.")] = Path("train.py"),
) -> None:
    """Write a train.py: a complete training program on real data, to read, run and change.

    NAME is digits, images, table, text, tokens or spiral. digits and spiral need no data.
    """
    if name is None:
        _list()
        return
    text = templates.read(name)
    if path.is_dir():
        path = path / "train.py"
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text.replace("python train.py", f"python {path.name}"))
    except FileExistsError:
        raise FileExists(
            f"{path} exists already and was not changed",
            expected="expected a path without a file",
            remedy=f"give another one: truestep new {name} {path.stem}_{name}.py",
        ) from None
    except OSError as error:
        raise UnwritableFolder(
            f"{path} cannot be written",
            expected=f"expected a path that can be written, got: {error.strerror or error}",
            remedy=f"give another one: truestep new {name} PATH",
        ) from None
    print(f"wrote {path}: {templates.title(name).partition(':')[0]}\n")
    lines = {
        f"python {path}": "train, and report silent failures at the end",
        f"python {path} --resume auto --export onnx": "export the best checkpoint, compared with the model",
        f"python {path} --help": "list the settings",
    }
    absent = templates.missing(name)
    if absent:
        lines = {f"pip install {' '.join(absent)}": "install the missing packages"} | lines
    width = max(map(len, lines))
    for command, does in lines.items():
        print(f"  {command:<{width}}  {does}")


def _list() -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name in templates.ORDER:
        table.add_row(Text(name, style="bold"), Text(templates.title(name)))
    console = colored_console()
    console.width = max(console.width, 80) if console.is_interactive else 100
    console.print(table)
    console.print("\nwrite one with `truestep new NAME [PATH]`", markup=False)
