"""Settings from the command line, a file and environment variables.

From lowest to highest priority: defaults of the class, values passed by the program, `--config FILE`, `TRUESTEP_*`,
flags.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import shlex
import sys
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from truestep.errors import BadSettings, PackageMissing
from truestep.loop.settings.names import ALIASES, check_fields, check_names

Kind = TypeVar("Kind")

PREFIX = "TRUESTEP_"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def read_settings(kind: type[Kind], given: Mapping[str, Any], args: Sequence[str] | None) -> Kind:
    """Return an instance of a settings class, with values from all sources.

    Args:
        kind: `Settings` or a subclass.
        given: values passed by the program, which replace the defaults of the class.
        args: the flags; None for those of the process.

    Raises:
        BadSettings: the program passes an unknown name, or its class is not a dataclass.
        PackageMissing: tyro is not installed.
        SystemExit: a flag, the file or a variable is invalid (exit code 2, with the reason on stderr), or `--help`
            was given.
    """
    try:
        import tyro
    except ImportError:
        raise PackageMissing(
            "reading flags needs tyro, which is not installed",
            expected=f"expected it in the environment of {sys.executable}",
            remedy="install it with `pip install 'truestep[settings]'`",
        ) from None
    check_fields(kind)
    check_names(kind, given, "write {}=")
    types_of = _types(kind)
    flags = [_plain_flag(flag, types_of) for flag in (sys.argv[1:] if args is None else args)]
    takes_file = "config" not in types_of
    path = _config(flags) if takes_file else None
    try:
        read = _from_file(kind, types_of, path) if path is not None else {}
        defaults = {**given, **read, **_from_environment(types_of, os.environ)}
        found: Any = tyro.cli(_form(kind, types_of, defaults, takes_file), args=flags, description=_about(kind))
        return kind(**{name: getattr(found, name) for name in types_of})
    except BadSettings as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        raise SystemExit(2) from None


def _form(kind: type, types_of: Mapping[str, Any], defaults: Mapping[str, Any], takes_file: bool) -> type:
    """Return the class that tyro fills: the settings with the defaults of this call, and `--config`."""
    fields: list[Any] = [(name, types_of[name], _default(value)) for name, value in defaults.items()]
    if takes_file:
        import tyro

        note = tyro.conf.arg(help="a TOML or JSON file with settings, for example the settings.json of another run")
        fields.append(("config", typing.Annotated[Path | None, note], dataclasses.field(default=None)))
    return dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), kw_only=True)


def _about(kind: type) -> str:
    """Return the description for `--help`: first paragraph of the docstring of the script, or of its settings."""
    script = getattr(sys.modules.get("__main__"), "__doc__", None)
    own = kind.__dict__.get("__doc__") or ""
    text = script or (own if not own.startswith(f"{kind.__name__}(") else "")
    return text.strip().split("\n\n")[0]


def _types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _plain_flag(flag: str, known: Mapping[str, Any]) -> str:
    """Return a flag with the name of another trainer replaced: `--max-grad-norm=1` becomes `--clip-norm=1`."""
    if not flag.startswith("--"):
        return flag
    name, sign, value = flag.partition("=")
    word = name[2:].replace("-", "_")
    if word in ALIASES and word not in known:
        return f"--{ALIASES[word].replace('_', '-')}{sign}{value}"
    return flag


def _config(flags: list[str]) -> Path | None:
    """Return the path given to `--config`; the last one wins, as with every flag."""
    path = None
    for at, flag in enumerate(flags):
        if flag.startswith("--config="):
            path = Path(flag.removeprefix("--config="))
        elif flag == "--config" and at + 1 < len(flags):
            path = Path(flags[at + 1])
    return path


def _from_file(kind: type, types_of: Mapping[str, Any], path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadSettings(
            f"the settings file {path} cannot be read",
            expected=error.strerror or str(error),
            remedy="pass the path of a TOML or JSON file to --config",
        ) from None
    except ValueError as error:  # from json, tomllib or the decoder of the text
        form = "JSON" if path.suffix == ".json" else "TOML"
        raise BadSettings(f"{path} is not valid {form}", expected=str(error), remedy="correct that line") from None
    if not isinstance(table, dict):
        raise BadSettings(
            f"{path} must hold a table of settings, got a {type(table).__name__}", remedy='write {"seed": 1}'
        )
    plain = {ALIASES.get(name, name): value for name, value in _underscored(table).items()}
    check_names(kind, plain, f'write "{{}}" in {path}')
    return {name: _converted(value, types_of[name], f'"{name}" in {path}') for name, value in plain.items()}


def _from_environment(types_of: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in types_of.items():
        variable = PREFIX + name.upper()
        if variable in environment and not dataclasses.is_dataclass(kind):
            found[name] = _converted(environment[variable], kind, f"the variable {variable}")
    return found


def _converted(value: Any, kind: Any, where: str) -> Any:
    """Return a value from a file or a variable, converted to the type of the setting by the same rules as a flag."""
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _nested(cast("type[Any]", kind), value, where)
    if isinstance(value, dict):
        return value
    for words in _spellings(value, kind):
        with contextlib.suppress(ValueError):
            return _parsed(kind, words)
    raise BadSettings(
        f"{where} must be {_type_name(kind)}, got {value!r}", remedy="write a value of this type, or leave it out"
    )


def _nested(kind: type[Any], table: dict[str, Any], where: str) -> Any:
    types_of, values = _types(kind), _underscored(table)
    for name in values:
        if name not in types_of:
            raise BadSettings(
                f'"{name}" is not a field of {where}',
                expected=f"expected one of {', '.join(types_of)}",
                remedy="write one of these, or leave it out",
            )
    return kind(**{name: _converted(value, types_of[name], f"{name} of {where}") for name, value in values.items()})


def _spellings(value: Any, kind: Any) -> list[list[str]]:
    """Return the possible spellings of a value as words of a flag, the most literal first."""
    if isinstance(value, list | tuple):
        return [[_word(item) for item in value]]
    if isinstance(value, str):
        if _is_bool(kind):
            word = value.strip().lower()
            return [["True"]] if word in _TRUE else [["False"]] if word in _FALSE else [[value]]
        return [[value], shlex.split(value.replace(",", " "))]
    return [[_word(value)]]


def _parsed(kind: Any, words: list[str]) -> Any:
    import tyro

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            return tyro.cli(kind, args=words)
    except SystemExit:
        raise ValueError(said.getvalue()) from None


def _word(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _is_bool(kind: Any) -> bool:
    return kind is bool or (
        typing.get_origin(kind) in (typing.Union, types.UnionType) and bool in typing.get_args(kind)
    )


def _type_name(kind: Any) -> str:
    """Return a readable name of a type: "float or None", '"min" or "max"'."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _type_name(typing.get_args(kind)[0])
    if origin is Literal:
        return " or ".join(
            f'"{choice}"' if isinstance(choice, str) else repr(choice) for choice in typing.get_args(kind)
        )
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_name(part) for part in typing.get_args(kind))
    if kind is type(None):
        return "None"
    return str(kind) if origin is not None else getattr(kind, "__name__", str(kind))


def _underscored(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in table.items()}


def _default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value)
