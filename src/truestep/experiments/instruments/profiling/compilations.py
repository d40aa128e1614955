"""Graph breaks of torch.compile in a run, with place and reason, and the guards that caused recompilations.

Graph breaks come from torch's loggers of the artifact `graph_breaks`, compilations from its compilation metrics.
"""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter
from contextlib import ExitStack
from typing import Any

_LOGGERS = ("torch._dynamo.symbolic_convert.__graph_breaks", "torch._dynamo.convert_frame.__graph_breaks")
_PLACE = re.compile(r"in user code at (.+):(\d+)$", re.MULTILINE)
_FILE = re.compile(r'File "(.+)", line (\d+)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")


class Compiled:
    """Listens to torch.compile from its import on."""

    def __init__(self) -> None:
        self._breaks: Counter[tuple[str, int, str, str]] = Counter()

    def install(self, stack: ExitStack) -> None:
        """Listen until the stack unwinds."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            handler = _Handler(self._broke)
            before = logger.level, logger.propagate
            if logger.level == logging.NOTSET:  # the user did not ask for these messages: keep them out of the output
                logger.setLevel(logging.DEBUG)
                logger.propagate = False
                stack.callback(setattr, logger, "propagate", before[1])
                stack.callback(logger.setLevel, before[0])
            logger.addHandler(handler)
            stack.callback(logger.removeHandler, handler)

    def results(self) -> dict[str, Any]:
        """Return breaks and compilations, the most frequent first; {} if nothing was compiled."""
        utils = sys.modules.get("torch._dynamo.utils")
        records = utils.get_compilation_metrics() if utils is not None else []
        if not records and not self._breaks:
            return {}
        again: Counter[tuple[str, str, int, str]] = Counter()
        for record in records:
            reason = getattr(record, "recompile_reason", None)
            if reason and record.co_filename:
                name, line = str(record.co_name), int(record.co_firstlineno or 0)
                resumed = _RESUMED.fullmatch(name)
                if resumed:
                    name, line = resumed[1], int(resumed[2])
                again[str(record.co_filename), name, line, _guard(reason)] += 1
        return {
            "graphs": len(records),
            "seconds": sum(float(getattr(record, "entire_frame_compile_time_s", 0) or 0) for record in records),
            "breaks": [
                {"path": path, "line": line, "reason": reason, "explanation": explanation, "count": count}
                for (path, line, reason, explanation), count in self._breaks.most_common()
            ],
            "recompiles": [
                {"path": path, "function": name, "line": line, "guard": guard, "count": count}
                for (path, name, line, guard), count in again.most_common()
            ],
        }

    def _broke(self, text: str) -> None:
        place = _PLACE.search(text)
        if place is None:
            files = list(_FILE.finditer(text))
            if not files:
                return
            place = files[-1]
        details = text.partition("Graph Break Reason:")[2].partition("User code traceback:")[0]
        reason = [line.strip() for line in (details or "the frame is not compiled at all").splitlines() if line.strip()]
        number = next((n for n, line in enumerate(reason) if line.startswith("Explanation:")), 0)
        explanation = reason[number].removeprefix("Explanation: ") if number else ""
        self._breaks[place[1], int(place[2]), reason[max(number - 1, 0)], explanation] += 1


def compilations() -> int:
    """Return the number of compilations so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return len(utils.get_compilation_metrics()) if utils is not None else 0


def _guard(reason: str) -> str:
    """Return a guard without the number of its compilation and without sizes.

    >>> _guard("0/1: tensor 'x' size mismatch at index 0. expected 3, actual 4")
    "tensor 'x' size mismatch at index 0"
    """
    text = re.sub(r"^\d+/\d+: ", "", reason.strip().splitlines()[0])
    return re.sub(r"\. expected \S+, actual \S+$", "", text)


class _Handler(logging.Handler):
    def __init__(self, broke: Any) -> None:
        super().__init__(logging.DEBUG)
        self._broke = broke

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._broke(record.getMessage())
        except Exception:
            self.handleError(record)
