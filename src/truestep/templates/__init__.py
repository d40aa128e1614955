"""The programs that `truestep new` writes: each a whole `train.py`, and from then on its user's own.

Nothing imports them. They are read as texts, and run as the examples of this project.
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
"""Their names, the one that needs no data first."""
_PACKAGES = {"sklearn": "scikit-learn", "PIL": "pillow"}
"""Packages that pip knows under another name."""
_BEHIND = {"from_flags": "tyro", "csv": "polars", "images": "PIL"}
"""Packages that attributes of this package need."""


def read(name: str) -> str:
    """Return the text of a template.

    Raises:
        UnknownTemplate: there is none of that name.
    """
    if name not in ORDER:
        near = difflib.get_close_matches(name, ORDER, n=1)
        raise UnknownTemplate(
            f'"{name}" is not a template',
            expected=f"one of {', '.join(ORDER)}",
            remedy=f"write truestep new {near[0] if near else ORDER[0]}",
        )
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def title(name: str) -> str:
    """Return what a template is about: the first line of its docstring.

    >>> title("digits")
    'Tell handwritten digits apart: 1,797 images of 8 x 8 pixels that come with scikit-learn, a quarter held out.'
    """
    return (ast.get_docstring(ast.parse(read(name))) or "").split("\n")[0]


def modules(name: str) -> tuple[str, ...]:
    """Return what a template needs to be installed beside this package, in the order in which it is used.

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
            case _:
                pass
    return tuple(module for module in found if module not in {*sys.stdlib_module_names, "truestep"})


def missing(name: str) -> tuple[str, ...]:
    """Return the packages that pip is to install before a template can run here."""
    return tuple(_PACKAGES.get(module, module) for module in modules(name) if not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # it stands in sys.modules as None
        return False
