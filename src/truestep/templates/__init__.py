"""The programs that `truestep new` writes: each a whole `train.py`, and from then on its user's own.

Nothing imports them. They are read as texts, and run as the examples of this project.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

from truestep.errors import UnknownTemplate

FOLDER = Path(__file__).parent
ORDER = ("digits", "images", "table", "text", "tokens", "spiral")
"""Their names, the one that needs nothing first."""


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
