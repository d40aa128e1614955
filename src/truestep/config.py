"""Options of a user: flags of the command, then ``[tool.truestep]`` in pyproject.toml or truestep.toml."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from truestep.errors import BadConfiguration

Format = Literal["text", "json", "sarif", "github"]
Level = Literal["never", "error", "warning"]
Stop = Literal["never", "error"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for watching a run and reporting on it."""

    select: tuple[str, ...] = ()
    """Ids of the rules to run; empty means all."""
    ignore: tuple[str, ...] = ()
    """Ids of rules to leave out."""
    fail_on: Level = "never"
    """Least severity of a finding that makes the exit code 1; "never" keeps the script's own exit code."""
    stop_on: Stop = "never"
    """"error" ends the script at the first error of high confidence."""
    active: bool = True
    """Whether checks may call the program's own code again, on small copies."""
    steps: int | None = None
    """Stop after this many optimizer steps."""
    budget: float = 0.01
    """Share of the run's time that watching may cost before costly reads stop."""
    format: Format = "text"
    output: Path | None = None
    """File for the report; None is the error stream."""
    record: Path | None = None
    """Folder for the record of the run."""
    report: Path | None = None
    """File for the report as a page."""
    to_tracker: bool = False
    """Write findings and curves to the trackers of the script as well."""
    quiet: bool = False
    """Print the report only when there is something to report."""
    exclude: tuple[str, ...] = ()
    """For lint: files and folders to leave out, as patterns in the form of `.gitignore`."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For lint: rules that are ignored in the files of a pattern."""


def load_options(start: Path, **flags: object) -> Options:
    """Return the options: flags of the command, then the nearest configuration at or above a folder, then defaults.

    In one folder ``truestep.toml`` wins over ``[tool.truestep]`` in pyproject.toml. A pyproject.toml without that
    table is skipped.

    Args:
        start: a folder, or a file in it.
        flags: fields of `Options`; None means that the flag was not given.

    Raises:
        BadConfiguration: a file is unreadable, a key is unknown or a value is invalid.
        TypeError: a flag is not a field of `Options`.
    """
    options, found = Options(), find_configuration(start)
    if found is not None:
        path, table = found
        options = replace(options, **_chosen(path, table))
    names = {field.name for field in fields(Options)}
    given: dict[str, Any] = {}
    for name, value in flags.items():
        if name not in names:
            raise TypeError(f"Options has no field {name!r}")
        if value is not None:
            key = name.replace("_", "-")
            given[name] = _READERS[key](value, f"--{key}") if key in _READERS else value
    return replace(options, **given)


def find_configuration(start: Path) -> tuple[Path, dict[str, object]] | None:
    """Return the nearest configuration file at or above a folder, with its table; None if none exists."""
    place = start.absolute()
    for folder in (place, *place.parents):
        own = folder / "truestep.toml"
        if own.is_file():
            return own, _toml(own)
        shared = folder / "pyproject.toml"
        if shared.is_file():
            tool = _toml(shared).get("tool")
            table = tool.get("truestep") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return shared, table
    return None


def share(value: object, where: str = "budget") -> float:
    """Parse a share of time: 0.01, "0.01" or "1%".

    >>> share("1%"), share(0.5)
    (0.01, 0.5)
    """
    number = None
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if number is None or not 0 <= number <= 1:
        raise _refused(where, value, 'expected a share of the run\'s time, such as "1%" or 0.01')
    return number


def _rules(value: object, where: str) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Iterable) or isinstance(parts, dict):
        raise _refused(where, value, "expected a list of rule ids")
    listed = list(parts)
    if not all(isinstance(part, str) for part in listed):
        raise _refused(where, value, "expected a list of rule ids")
    ids = [id.strip() for part in listed for id in part.split(",")]
    return tuple(dict.fromkeys(id for id in ids if id))


def _one_of(kind: object) -> Callable[[object, str], object]:
    choices = cast("tuple[str, ...]", get_args(kind))

    def read(value: object, where: str) -> object:
        if value not in choices:
            raise _refused(where, value, f"expected one of {', '.join(_quoted(choice) for choice in choices)}")
        return value

    return read


def _patterns(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise _refused(where, value, "expected a list of patterns")
    return tuple(value)


def _per_file(value: object, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise _refused(where, value, "expected a table of patterns with a list of rule ids for each")
    return tuple((pattern, _rules(ids, f'"{pattern}" of {where}')) for pattern, ids in value.items())


_READERS: dict[str, Callable[[object, str], object]] = {
    "select": _rules,
    "ignore": _rules,
    "fail-on": _one_of(Level),
    "stop-on": _one_of(Stop),
    "budget": share,
    "format": _one_of(Format),
    "exclude": _patterns,
    "per-file-ignores": _per_file,
}
"""Parser of each key of a configuration file."""


def _chosen(path: Path, table: dict[str, object]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            near = difflib.get_close_matches(key.replace("_", "-"), _READERS, n=1, cutoff=0.5)
            raise BadConfiguration(
                f'"{key}" is not a key of the configuration in {path}',
                expected=f"expected one of {', '.join(_quoted(known) for known in _READERS)}",
                remedy=f'write "{near[0]}"' if near else "remove it",
            )
        chosen[key.replace("-", "_")] = _READERS[key](value, f"{key} in {path}")
    return chosen


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfiguration(
            f"{path} cannot be read", expected=str(error), remedy="make the file readable, or remove it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{path} is not valid TOML", expected=str(error), remedy="correct that line") from error


def _refused(where: str, value: object, expected: str) -> BadConfiguration:
    return BadConfiguration(
        f"{_quoted(value)} is not a value of {where}", expected=expected, remedy="write one of these, or leave it out"
    )


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
