"""Functions of a program with other code in place of their own."""

from __future__ import annotations

import gc
import inspect
import pickle
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import wraps
from types import FunctionType
from typing import Any

import pytest

from truestep.seams.code.functions import code_of, observe

Passed = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


def shapes(a: int, b: int = 2, /, c: int = 3, *rest: int, d: int, e: int = 5, **others: int) -> tuple[Any, ...]:
    """Has every kind of parameter."""
    return a, b, c, rest, d, e, others


def only_rest(*sizes: int, **others: int) -> tuple[Any, ...]:
    return sizes, others


def enclosing() -> Callable[[int], int]:
    z, y = 10, 20

    def inner(x: int) -> int:
        return x + z + y

    return inner


class Base:
    def name(self) -> str:
        return "base"


class Derived(Base):
    def name(self) -> str:
        return super().name() + " derived"

    @staticmethod
    def twice(x: int) -> int:
        return 2 * x


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@as_it_is
def wrapped(x: int) -> int:
    return x


def fails() -> None:
    raise ValueError("in the function")


def numbers() -> Iterator[int]:
    yield 1


@pytest.fixture
def passed() -> Passed:
    return []


@pytest.fixture
def hook(passed: Passed) -> Callable[..., Any]:
    def called(own: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        passed.append((own.__qualname__, args, kwargs))
        return own(*args, **kwargs)

    return called


def test_calls_are_passed_on_with_all_defaults(passed: Passed, hook: Callable[..., Any]) -> None:
    with ExitStack() as stack:
        assert observe(stack, shapes, hook) is not None
        assert shapes(1, d=4) == (1, 2, 3, (), 4, 5, {})
        assert shapes(1, 2, 3, 4, 5, d=1, q=2) == (1, 2, 3, (4, 5), 1, 5, {"q": 2})
        with pytest.raises(TypeError, match=r"shapes\(\) missing 1 required positional argument: 'a'"):
            shapes()  # type: ignore[call-arg]
    assert passed == [("shapes", (1, 2, 3), {"d": 4, "e": 5}), ("shapes", (1, 2, 3, 4, 5), {"d": 1, "e": 5, "q": 2})]
    assert shapes(1, d=4) == (1, 2, 3, (), 4, 5, {})
    assert len(passed) == 2


@pytest.mark.parametrize(
    ("function", "call", "result"),
    [
        (only_rest, lambda: only_rest(1, 2, x=3), ((1, 2), {"x": 3})),
        (Derived.name, lambda: Derived().name(), "base derived"),
        (Derived.twice, lambda: Derived().twice(4), 8),
        (vars(wrapped)["__wrapped__"], lambda: wrapped(7), 7),
    ],
)
def test_every_kind_of_function(
    function: FunctionType, call: Callable[[], object], result: object, passed: Passed, hook: Callable[..., Any]
) -> None:
    with ExitStack() as stack:
        assert observe(stack, function, hook) is not None
        assert call() == result
    assert [name for name, _, _ in passed] == [function.__qualname__]
    assert call() == result
    assert len(passed) == 1


def test_a_function_with_variables_of_an_enclosing_one(passed: Passed, hook: Callable[..., Any]) -> None:
    inner, other = enclosing(), enclosing()
    with ExitStack() as stack:
        assert isinstance(inner, FunctionType)
        observe(stack, inner, hook)
        assert (inner(1), other(1)) == (31, 31)
    assert len(passed) == 1


def test_source_signature_and_pickle_stay(hook: Callable[..., Any]) -> None:
    signature, text = inspect.signature(shapes), inspect.getsource(shapes)
    own = shapes.__code__
    with ExitStack() as stack:
        observe(stack, shapes, hook)
        assert (inspect.signature(shapes), inspect.getsource(shapes)) == (signature, text)
        assert pickle.loads(pickle.dumps(shapes)) is shapes
        assert code_of(shapes) is own
    assert shapes.__code__ is own
    assert "__wrapped__" not in vars(shapes)


def test_an_error_names_the_lines_of_the_program(hook: Callable[..., Any]) -> None:
    with ExitStack() as stack:
        observe(stack, fails, hook)
        with pytest.raises(ValueError, match="in the function") as caught:
            fails()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.name) == (__file__, "fails")


def test_a_function_that_calls_itself_is_observed_from_outside_only(passed: Passed, hook: Callable[..., Any]) -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    own = down.__code__
    with ExitStack() as stack:
        observe(stack, down, hook)
        assert (down(700), down(2)) == (700, 2)
        assert down.__code__ is not own
    assert [args for _, args, _ in passed] == [(700,), (2,)]
    assert down.__code__ is own


def test_functions_that_call_each_other_need_few_more_frames(passed: Passed, hook: Callable[..., Any]) -> None:
    def one(n: int) -> int:
        return 0 if n == 0 else 1 + other(n - 1)

    def other(n: int) -> int:
        return 0 if n == 0 else 1 + one(n - 1)

    own = one.__code__, other.__code__
    with ExitStack() as stack:
        observe(stack, one, hook)
        observe(stack, other, hook)
        assert (one(600), one(1)) == (600, 1)
        assert one.__code__ is not own[0]
    assert [args for _, args, _ in passed][-2:] == [(1,), (0,)]
    assert (one.__code__, other.__code__) == own


def test_a_function_that_is_restored_in_its_call_stays_restored() -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else down(n - 1)

    def ends(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stack.close()
        return function(*args, **kwargs)

    own, stack = down.__code__, ExitStack()
    observe(stack, down, ends)
    assert down(3) == 0
    assert down.__code__ is own


def test_an_observed_closure_is_freed(hook: Callable[..., Any]) -> None:
    held = {1}

    def make() -> weakref.ref[FunctionType]:
        kept = held.copy()

        def inner(n: int) -> int:
            return len(kept) if n == 0 else inner(n - 1)

        observe(stack, inner, hook)
        assert inner(2) == 1
        return weakref.ref(inner)

    with ExitStack() as stack:
        ref = make()
        gc.collect()
        assert ref() is None


def test_it_can_be_restored_early_and_once(hook: Callable[..., Any]) -> None:
    own = shapes.__code__
    with ExitStack() as stack:
        restore = observe(stack, shapes, hook)
        assert restore is not None
        restore()
        assert shapes.__code__ is own
        again = observe(stack, shapes, hook)
        assert again is not None
        restore()
        assert shapes.__code__ is not own
    assert shapes.__code__ is own


def test_a_generator_and_an_observed_function_are_refused(hook: Callable[..., Any]) -> None:
    with ExitStack() as stack:
        assert observe(stack, numbers, hook) is None
        assert observe(stack, shapes, hook) is not None
        assert observe(stack, shapes, hook) is None
