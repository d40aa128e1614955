"""Rows before and after a shuffle in place."""

import pickle
import random

import numpy as np
import pytest
import torch

from truestep.events import Shuffled
from truestep.testing import capture_events


def shuffled(call: object) -> list[Shuffled]:
    random.seed(0)
    np.random.seed(0)
    with capture_events() as events:
        call()  # type: ignore[operator]
    return [event for event in events if isinstance(event, Shuffled)]


@pytest.mark.parametrize(
    "values",
    [
        torch.arange(100), torch.arange(300.0).view(100, 3), torch.arange(100, dtype=torch.bfloat16),
        torch.arange(400).view(100, 2, 2)[:, 0], torch.complex(torch.arange(100.0), torch.zeros(100)),
        torch.complex(torch.arange(100.0), torch.ones(100)).conj(),
    ],
)  # fmt: skip
def test_rows_of_a_tensor_are_overwritten(values: torch.Tensor) -> None:
    (event,) = shuffled(lambda: random.shuffle(values))
    assert (event.kind, event.rows, event.before, event.by) == ("tensor", 100, 100, "random.shuffle")
    assert 30 < event.after == len({str(row) for row in values.tolist()}) < 70
    assert event.site is not None
    assert event.site.path == __file__


def test_rows_of_an_array_are_overwritten_by_python_only() -> None:
    values = np.arange(300).reshape(100, 3)
    (event,) = shuffled(lambda: random.shuffle(values))
    assert (event.kind, event.before) == ("array", 100)
    assert event.after == len(np.unique(values, axis=0)) < 70
    assert shuffled(lambda: np.random.shuffle(np.arange(300).reshape(100, 3))) == []


def test_records_of_an_array_are_views() -> None:
    (event,) = shuffled(lambda: random.shuffle(np.array([(i, i) for i in range(100)], dtype=[("a", int), ("b", int)])))
    assert event.kind == "array"
    assert event.after < 70
    assert shuffled(lambda: random.shuffle(np.empty((5, 0)))) == []


@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_numpy_overwrites_rows_of_a_tensor() -> None:
    (event,) = shuffled(lambda: np.random.shuffle(torch.arange(100)))
    assert (event.kind, event.by) == ("tensor", "numpy.random.shuffle")
    assert event.after < 70


def test_values_that_are_copied_are_not_read() -> None:
    for values in ([1, 2, 3], np.arange(9), [torch.ones(2), torch.zeros(2)], torch.ones(1, 4), bytearray(b"abc")):
        assert shuffled(lambda values=values: random.shuffle(values)) == []


def test_the_result_and_the_generator_are_those_of_the_plain_call() -> None:
    plain, seen = torch.arange(50), torch.arange(50)
    random.seed(3)
    random.shuffle(plain)
    state = random.getstate()
    random.seed(3)
    with capture_events():
        assert random.shuffle(seen) is None
    assert plain.equal(seen)
    assert random.getstate() == state


def test_errors_are_those_of_the_plain_call() -> None:
    with capture_events(), pytest.raises(TypeError):
        random.shuffle((1, 2, 3))  # type: ignore[arg-type]
    with capture_events(), pytest.raises(TypeError):
        random.shuffle()  # type: ignore[call-arg]


def test_the_first_calls_of_a_line_are_compared() -> None:
    values = torch.arange(10)

    def often() -> None:
        for _ in range(40):
            random.shuffle(values)

    assert len(shuffled(often)) == 20


def test_the_functions_are_pickled_by_name_and_restored() -> None:
    before = random.shuffle, np.random.shuffle
    with capture_events():
        assert random.shuffle is not before[0]
        assert pickle.loads(pickle.dumps(random.shuffle)) is random.shuffle
        assert pickle.loads(pickle.dumps(np.random.shuffle)) is np.random.shuffle
    assert (random.shuffle, np.random.shuffle) == before
