"""The local variables of frames: where they can be read, and that the read has no effect."""

from __future__ import annotations

import builtins
import gc
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from truestep.probes.context.local_variables import ONE_SNAPSHOT, readable, shares_snapshot, variables


class Args:
    def __init__(self) -> None:
        self.dir, self.vars = "runs", 3


class Model:
    training = True

    def eval(self) -> Model:
        return self

    def exec(self, text: str) -> str:
        return text


def calls_eval_of_a_model(model: Any, x: Any) -> Any:
    model.eval()
    return model.training, x


def names_eval_of_a_model(model: Any) -> Any:
    predict = model.eval
    return predict()


def calls_exec_of_an_object(window: Any) -> Any:
    return window.exec("show")


def reads_attributes_of_such_names(args: Any) -> Any:
    args.vars = args.dir
    return args


def looks_at_an_object(args: Any) -> Any:
    settings = vars(args)
    return settings, dir(args)


def looks_inside_of_arguments(args: Any) -> Any:
    return {key: value for key, value in sorted(vars(args).items()) if key not in dir({})}


def holds_a_function_that_shares(width: int) -> Any:
    def inner() -> Any:
        return locals()

    return inner, width


APART = [
    calls_eval_of_a_model,
    names_eval_of_a_model,
    calls_exec_of_an_object,
    reads_attributes_of_such_names,
    looks_at_an_object,
    looks_inside_of_arguments,
    holds_a_function_that_shares,
]


def keeps_locals(width: int) -> Any:
    settings = locals()
    yield
    return settings


def keeps_vars(width: int) -> Any:
    settings = vars()
    yield
    return settings


def lists_names(width: int) -> Any:
    names = dir()
    yield
    return names


def sets_by_exec(width: int) -> Any:
    exec("depth = width + 1")
    yield
    return eval("depth") if ONE_SNAPSHOT else None


def asks_builtins(width: int) -> Any:
    settings = builtins.vars()
    yield
    return settings


def asks_the_frame(width: int) -> Any:
    frame = sys._getframe()
    settings = frame.f_locals if ONE_SNAPSHOT else dict(frame.f_locals)
    yield
    return {key: value for key, value in settings.items() if key != "frame"}


def asks_inspect(width: int) -> Any:
    frame = inspect.currentframe()
    assert frame is not None
    settings = frame.f_locals if ONE_SNAPSHOT else dict(frame.f_locals)
    yield
    return {key: value for key, value in settings.items() if key != "frame"}


SHARING = [
    keeps_locals,
    keeps_vars,
    lists_names,
    sets_by_exec,
    asks_builtins,
    asks_the_frame,
    asks_inspect,
]


@pytest.mark.parametrize("function", APART, ids=lambda function: function.__name__)
def test_methods_and_objects_of_such_names_share_nothing(function: Callable[..., Any]) -> None:
    assert not shares_snapshot(function.__code__)


@pytest.mark.parametrize("function", SHARING, ids=lambda function: function.__name__)
def test_functions_that_share_their_snapshot_are_known(function: Callable[..., Any]) -> None:
    assert shares_snapshot(function.__code__)


@pytest.mark.parametrize("function", SHARING, ids=lambda function: function.__name__)
def test_reading_changes_nothing_in_functions_that_share_their_snapshot(function: Callable[..., Any]) -> None:
    def returned(read: bool) -> Any:
        running = function(3)
        next(running)
        if read:
            variables(running.gi_frame)
        try:
            next(running)
        except StopIteration as stopped:
            return stopped.value
        raise AssertionError("it did not end")

    assert returned(read=True) == returned(read=False)


@pytest.mark.parametrize("call", [lambda: frame_of_a_prediction(Model(), 4), lambda: frame_of_settings(Args(), 4)])
def test_variables_are_read_beside_such_methods(call: Callable[[], FrameType]) -> None:
    if sys.gettrace() is not None:
        pytest.skip("a debugger or a measurement of coverage reads the frames")
    frame = call()
    assert readable(frame)
    assert variables(frame)["x"] == 4
    if ONE_SNAPSHOT:
        assert snapshot_of(frame) == {}


def snapshot_of(frame: FrameType) -> dict[str, Any]:
    """Return the dictionary left by the last look at a frame; a read of the frame itself would fill it again."""
    found = [one for one in gc.get_referents(frame) if type(one) is dict and one is not frame.f_globals]
    return next((one for one in found if one is not frame.f_builtins), {})


def passed_up() -> FrameType:
    return sys._getframe(1)


def frame_of_a_prediction(model: Any, x: int) -> FrameType:
    model.eval()
    return passed_up()


def frame_of_settings(args: Any, x: int) -> FrameType:
    settings = vars(args)
    settings["dir"] = settings["vars"]
    return passed_up()


def test_a_module_is_its_own_namespace() -> None:
    frame = eval("sys._getframe()", {"sys": sys})
    assert readable(frame)
    assert "sys" in variables(frame)
    assert "sys" in frame.f_locals
