"""Changes of the files that are checked, one round for each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from truestep.errors import PackageMissing

_ENDS = (".py", ".ipynb", ".gitignore")


def rounds(places: Iterable[Path]) -> Iterator[int]:
    """Yield a number at once, and after each change of a file that may be checked; Ctrl-C ends it.

    The folder of a named file is watched, since editors write a new file in its place.

    Raises:
        PackageMissing: watchfiles is not installed.
    """
    if find_spec("watchfiles") is None:
        raise PackageMissing(
            "--watch needs the package watchfiles, which is not installed",
            expected="expected watchfiles, version 1",
            remedy="pip install 'truestep[watch]'",
        )
    from watchfiles import Change, DefaultFilter, watch

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it notes each interrupt
    usual = DefaultFilter()

    def matters(change: Change, path: str) -> bool:
        return path.endswith(_ENDS) and usual(change, path)

    folders = {place if place.is_dir() else place.absolute().parent for place in places}
    number = 0
    yield number
    for _ in watch(*sorted(folders), watch_filter=matters, raise_interrupt=False):
        number += 1
        yield number
