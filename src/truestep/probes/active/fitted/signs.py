"""Signs in the source of a program: that it computes statistics of an array, and that results have no targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import FrameType

from truestep import source
from truestep.events import Site
from truestep.probes.forward.results import use_of
from truestep.probes.variables.origins import scope_of

_COMPUTES = re.compile(
    r"fit|mean|std|var|min|max|ptp|median|quantile|percentile|scale|norm|stat|z_?score", re.IGNORECASE
)
_RANGES = re.compile(r"\b(?:nan|a|f)?(?:min|max)\(|\b(?:aminmax|ptp)\(|min_?max", re.IGNORECASE)
_WRITES = re.compile(r"\bto_csv\(|\bsavetxt\(|\bcsv\.(?:writer|DictWriter)\(|submission", re.IGNORECASE)


def computes_ranges(paths: Iterable[str]) -> bool:
    """Return True if a file computes a minimum or maximum: a range can be known without the data."""
    return any(_RANGES.search(line) for path in paths for line in source.read(path).lines)


def is_written(site: Site | None, frames: list[FrameType]) -> bool:
    """Return True if results are not compared with targets in their function, and the program writes rows to files."""
    paths = {frame.f_code.co_filename for frame in frames}
    writes = any(_WRITES.search(line) for path in paths for line in source.read(path).lines)
    return writes and (site is None or use_of(site).how not in ("compared", "loss"))


def computed_at(frames: list[FrameType], name: str) -> Site | None:
    """Return the first call that computes statistics of a whole array, which is an argument or has the method."""
    for frame in frames:
        calls = [one for node in scope_of(frame.f_code) for one in source.walk(node) if isinstance(one, ast.Call)]
        found = [one for one in calls if _computes(one, name)]
        for node in sorted(found, key=lambda one: (one.lineno, one.col_offset))[:1]:
            places = node.lineno, node.col_offset, node.end_lineno or -1, node.end_col_offset or -1
            return Site(frame.f_code.co_filename, *places)
    return None


def _computes(call: ast.Call, name: str) -> bool:
    func = call.func
    called = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    owner = [func.value] if isinstance(func, ast.Attribute) else []
    kinds = ast.Name | ast.Attribute | ast.Subscript
    whole = any(isinstance(one, kinds) and ast.unparse(one) == name for one in (*owner, *call.args))
    return whole and bool(_COMPUTES.search(called))
