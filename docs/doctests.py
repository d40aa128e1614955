"""Show the doctests of docstrings as code. An extension of Griffe, which reads the docstrings for the site."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_RUN = re.compile(r"^( *)>>> .*(?:\n\1.+)*", re.MULTILINE)


class Doctests(Extension):
    """Puts a fence around each run of lines that begins with a prompt."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _RUN.sub(lambda run: f"{run[1]}```pycon\n{run[0]}\n{run[1]}```", obj.docstring.value)
