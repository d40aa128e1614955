"""The ways to run a trained model: eager, compiled, exported and quantised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from truestep.errors import PackageMissing, TrueStepError
from truestep.experiments.instruments.inference.names import EAGER, NAMES
from truestep.experiments.instruments.inference.subject import Subject
from truestep.export.calls import Call
from truestep.export.formats import FILES, Loaded, format_of
from truestep.export.int8.quantising import quantised

Runner = Callable[[Call], Any]


@dataclass(frozen=True)
class Way:
    """One way to run a model.

    Attributes:
        name: of `NAMES`.
        build: returns the function that is timed; raises any error if that is impossible.
        context: gradient mode of the calls.
        slow: True if building takes seconds.
    """

    name: str
    build: Callable[[Subject], Runner]
    context: Callable[[], AbstractContextManager[Any]] = torch.no_grad
    slow: bool = False


def ways_of(subject: Subject) -> list[Way]:
    """Return the ways for a subject: all for a model, beside its exports."""
    known = {
        EAGER: Way(EAGER, _eager),
        "with gradients": Way("with gradients", _eager, torch.enable_grad),
        "inference_mode": Way("inference_mode", _eager, torch.inference_mode),
        "compiled": Way("compiled", _compiled, slow=True),
        "pt2": Way("pt2", lambda given: _written(given, "pt2"), slow=True),
        "onnx": Way("onnx", lambda given: _written(given, "onnx"), slow=True),
        "int8": Way("int8", _int8),
        "int8 compiled": Way("int8 compiled", lambda given: _compile(_int8_model(given)), slow=True),
    }
    if subject.model is None:
        known = {}
    for name in subject.exports:
        known[name] = _of_export(name)
    return [known[name] for name in NAMES if name in known]


def _of_export(name: str) -> Way:
    format = name.removeprefix("int8 ")
    return Way(name, lambda given: _loaded(given, format, given.exports[name] / FILES[format]))


def _eager(subject: Subject) -> Runner:
    model = subject.model
    assert model is not None
    return lambda call: model(*call.args, **call.kwargs)


def _compiled(subject: Subject) -> Runner:
    return _compile(subject.model)


def _compile(model: Any) -> Runner:
    compiled: Any = torch.compile(model)
    return lambda call: compiled(*call.args, **call.kwargs)


def _written(subject: Subject, format: str) -> Runner:
    writer = format_of(format)
    writer.require()
    path = subject.folder / FILES[format]
    if not path.exists():
        writer.write(subject.source, path)
    return _loaded(subject, format, path)


def _loaded(subject: Subject, format: str, path: Any) -> Runner:
    format_of(format).require()
    loaded: Loaded = format_of(format).load(path)[0]
    return lambda call: loaded(call.args, call.kwargs)


def _int8(subject: Subject) -> Runner:
    model = _int8_model(subject)
    return lambda call: model(*call.args, **call.kwargs)


def _int8_model(subject: Subject) -> Any:
    assert subject.model is not None
    return quantised(subject.model)


def reason(error: Exception) -> str:
    """Return the reason that a way cannot be built, in one line."""
    if isinstance(error, PackageMissing):
        return f"{error.happened}: {error.remedy}"
    if isinstance(error, TrueStepError):
        return error.happened
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}"[:200]
