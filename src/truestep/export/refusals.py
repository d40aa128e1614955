"""Errors of an export, explained at the line of the model that stops it."""

from __future__ import annotations

import functools
import linecache
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

import torch

from truestep.errors import NotExportable
from truestep.export import causes
from truestep.export.causes import Cause, cause_of

_OWN = Path(__file__).parents[1]
_TORCH = Path(torch.__file__).parent
_LIBRARY = Path(logging.__file__).parents[1]
_STACK_LINE = re.compile(r'File "(.+)", line (\d+), in ')
_SHAPES = "torch.fx.experimental.symbolic_shapes"
_MADE = re.compile(r"create_symbol (\w+) = .* for L\['(.+?)'\](.*)\.size\(\)\[(\d+)\]")
_FIXED = re.compile(r"set_replacement (\w+) = (\d+)\b")
_CHOSEN = re.compile(r"eval (.+?) \[guard added\]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the model.

    Attributes:
        path: its file.
        number: its number, from 1.
    """

    path: str
    number: int

    @property
    def code(self) -> str:
        """The text of the line, without indentation."""
        return linecache.getline(self.path, self.number).strip()

    def __str__(self) -> str:
        path = Path(self.path)
        here = Path.cwd()
        return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{self.number}"


def line_of(error: BaseException) -> Line | None:
    """Return the line of the model that an error comes from: the innermost one outside of torch."""
    return _last(_frames(error.__traceback__))


def line_in(stack: str) -> Line | None:
    """Return the line of the model in the text of a stack, such as that of a node of a graph."""
    places = (Line(path, int(number)) for path, number in _STACK_LINE.findall(stack))
    return _last(place for place in places if _is_of_model(place.path))


def refusal(cause: Cause, line: Line | None, *, detail: str = "", name: str = "the model") -> NotExportable:
    """Return the error for a cause.

    Args:
        cause: why the model cannot be exported.
        line: the line of the model; None if it is unknown.
        detail: a fact that is added, such as the dimension.
        name: subject of the message if no line is known.
    """
    if line is None:
        happened = f"{name} {cause.happened}"
    else:
        happened = f"{line}: `{line.code}` {cause.happened}"
    why = ": ".join(text for text in (detail, cause.why) if text)
    return NotExportable(happened, cause=cause.slug, expected=why, remedy=cause.mend)


def explained(error: Exception, model: torch.nn.Module, line: Line | None = None) -> NotExportable:
    """Return the error of an export with the line of the model that stops it, and the mend.

    Args:
        error: of torch.
        model: any module.
        line: the line of the model; None for the one in the traceback of the error.
    """
    line = line or line_of(error)
    said = _shortened(str(error)) or type(error).__name__
    cause = cause_of(str(error), "" if line is None else line.code)
    if _passed(error.__traceback__, _TORCH / "distributions"):
        cause = causes.DISTRIBUTION
    elif not cause.why and any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        cause = causes.SCRIPTED
    if not cause.why:
        return refusal(cause, line, detail=f"torch says: {said[:200]}", name=type(model).__name__)
    operator = re.search(r"op='([\w.]+)'", str(error))
    return refusal(cause, line, detail=f"operator {operator[1]}" if operator else "", name=type(model).__name__)


def _shortened(message: str) -> str:
    """Return the first sentences of a message of torch, without its advice for other uses."""
    return re.split(r" (?=If you're using torch\.compile|The error above occurred)", " ".join(message.split()))[0]


def _passed(trace: TracebackType | None, folder: Path) -> bool:
    """Return True if an error came through the code in a folder."""
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).is_relative_to(folder):
            return True
        trace = trace.tb_next
    return False


@dataclass(frozen=True, slots=True)
class FixedSize:
    """The fixed size of a dimension that is to be free.

    Attributes:
        line: the line that fixes it, or chooses by it; None if it is unknown.
        dimension: description of the dimension, with its size if that is fixed.
        method: the method of torch that the line has called.
    """

    line: Line | None = None
    dimension: str = ""
    method: str = ""

    @property
    def cause(self) -> Cause:
        """The cause of a refusal."""
        return causes.fixed_size("" if self.line is None else self.line.code, self.method)


def fixed_sizes(trace: Callable[[], object]) -> FixedSize:
    """Return the first free dimension with a fixed size, or else the first that the model chooses by.

    Args:
        trace: traces the model with dimensions that may be fixed. It is read as torch logs it.
    """
    handler = _Sizes()
    logger = logging.getLogger(_SHAPES)
    before = (logger.level, logger.propagate, logger.handlers[:], logging.root.manager.disable, logger.disabled)
    logging.disable(logging.NOTSET)
    logger.disabled = False  # `logging.config` disables the loggers that exist
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        trace()
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        logger.handlers[:] = before[2]
        logging.disable(before[3])
        logger.disabled = before[4]
    return handler.found if handler.found.dimension else handler.chosen


class _Sizes(logging.Handler):
    """Reads the symbols of dimensions, the first that is fixed and the first choice, with the lines of the model."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._names: dict[str, str] = {}
        self.found = self.chosen = FixedSize()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if made := _MADE.match(text):
            symbol, name, part, dim = made.groups()
            self._names[symbol] = f"dimension {dim} of {name}{part}"
        elif (fixed := _FIXED.match(text)) and not self.found.dimension and fixed[1] in self._names:
            dimension = f"{self._names[fixed[1]]} is fixed to {fixed[2]}"
            self.found = FixedSize(*_innermost(sys._getframe(), dimension))
        elif (chosen := _CHOSEN.match(text)) and not self.chosen.dimension:
            dimension = next((self._names[name] for name in re.findall(r"\w+", chosen[1]) if name in self._names), "")
            found = FixedSize(*_innermost(sys._getframe(), dimension))
            if found.method == "__bool__":
                self.chosen = found


def _innermost(frame: FrameType | None, dimension: str) -> tuple[Line | None, str, str]:
    """Return the innermost line of the model in the stack below the call of this package, and the method it calls."""
    method = ""
    while frame is not None:
        path = frame.f_code.co_filename
        if Path(path).is_relative_to(_OWN) and frame.f_code.co_name == "traced":
            break
        if _is_of_model(path):
            return Line(path, frame.f_lineno), dimension, method
        method, frame = frame.f_code.co_name, frame.f_back
    return None, dimension, ""


def _frames(trace: TracebackType | None) -> Iterator[Line]:
    while trace is not None:
        if _is_of_model(trace.tb_frame.f_code.co_filename):
            yield Line(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next


@functools.cache
def _is_of_model(path: str) -> bool:
    """Return True for files outside of torch, of this package and of Python's own library."""
    place = Path(path)
    if not place.is_file() or place.is_relative_to(_TORCH) or place.is_relative_to(_OWN):
        return False
    return "site-packages" in place.parts or not place.is_relative_to(_LIBRARY)


def _last(lines: Iterable[Line]) -> Line | None:
    found = None
    for line in lines:
        found = line
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Keep torch from logging and printing its own reports of errors, which are explained here."""
    before, errors = logging.root.manager.disable, sys.stderr
    logging.disable(logging.CRITICAL)
    sys.stderr = _Nowhere()
    try:
        yield
    finally:
        logging.disable(before)
        sys.stderr = errors


class _Nowhere:
    """A stream that drops everything."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return False
