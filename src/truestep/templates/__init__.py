"""The programs that `truestep new` writes: each is a complete `train.py` for the user to change.

They are never imported, but read as text; the tests run them as examples.
"""

from __future__ import annotations

import ast
import difflib
import sys
from importlib.util import find_spec
from pathlib import Path

from truestep.errors import UnknownTemplate

FOLDER = Path(__file__).parent
ORDER = ("digits", "images", "table", "text", "tokens", "spiral")
"""Names in the order of the list; the first one needs no data."""
_PACKAGES = {"sklearn": "scikit-learn", "PIL": "pillow"}
"""Distributions that pip installs, by module, where the names differ."""
_BEHIND = {"from_flags": "tyro", "csv": "polars", "images": "PIL"}
"""Modules that attributes of `truestep` import when they are used."""


def read(name: str) -> str:
    """Return the text of a template.

    Raises:
        UnknownTemplate: no template has that name.
    """
    if name not in ORDER:
        near = difflib.get_close_matches(name, ORDER, n=1)
        raise UnknownTemplate(
            f'"{name}" is not a template',
            expected=f"expected one of {', '.join(ORDER)}",
            remedy=f"write truestep new {near[0] if near else ORDER[0]}",
        )
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def title(name: str) -> str:
    """Return the first line of a template's docstring.

    >>> title("digits")
    'Classify handwritten digits: 1,797 images of 8 x 8 pixels that come with scikit-learn, a quarter held out.'
    """
    return (ast.get_docstring(ast.parse(read(name))) or "").split("\n")[0]


def modules(name: str) -> tuple[str, ...]:
    """Return the modules that a template needs besides `truestep` and the standard library, in order of use.

    >>> modules("digits")
    ('torch', 'sklearn', 'tyro')
    """
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(read(name))):
        match node:
            case ast.Import(names=names):
                found |= dict.fromkeys(alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module)):
                found[module.partition(".")[0]] = None
            case ast.Attribute(attr=attribute) if attribute in _BEHIND:
                found[_BEHIND[attribute]] = None
    return tuple(module for module in found if module not in {*sys.stdlib_module_names, "truestep"})


def missing(name: str) -> tuple[str, ...]:
    """Return the names for pip of the packages that a template needs and that are not installed here."""
    return tuple(_PACKAGES.get(module, module) for module in modules(name) if not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # sys.modules has a module without a spec under this name
        return False
