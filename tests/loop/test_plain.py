"""State comes back from a file unchanged, or is refused while it still exists."""

import collections
import decimal
import enum
import io
import random
import re
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from truestep.errors import UnsavableState
from truestep.loop.checkpoint.safe_state import plain, restored

Point = collections.namedtuple("Point", "x y")


class Phase(enum.Enum):
    WARM = 1


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    ADAM = "adam"


class Count(int):
    pass


class Settings(dict):
    pass


def through_a_file(value):
    file = io.BytesIO()
    torch.save(plain(value), file)
    file.seek(0)
    return restored(torch.load(file, weights_only=True))


SAME = {
    "numbers": [1, 2.5, True, None, 1 + 2j, 10**30, float("inf")],
    "text": ["text", b"bytes", bytearray(b"more")],
    "torch": [torch.Size([1, 2]), torch.bfloat16, torch.device("cpu"), torch.strided],
    "keys": {(1, "a"): 1, None: 2, 1.5: 3, torch.float32: 4},
    "counter": collections.Counter("aab"),
    "ordered": collections.OrderedDict(b=1, a=2),
    "sets": [{1, 2}, frozenset({(1, 2)})],
    "deque": collections.deque([1, 2, 3], maxlen=5),
    "path": Path("a") / "b",
    "default": collections.defaultdict(list, {1: [2]}),
    "own tag": {"__truestep__": "tensor", "value": 1},
    "python's generator": random.getstate(),
    "numpy's generator": np.random.default_rng(0).bit_generator.state,
    "nested": {"a": [{"b": (1, [2, {3}])}]},
}


@pytest.mark.parametrize("value", SAME.values(), ids=SAME)
def test_value_comes_back_equal_and_of_its_type(value):
    back = through_a_file(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "simpler"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Count(4), 4),
        (Level.HIGH, 3),
        (Name.ADAM, "adam"),
        (Settings(a=1), {"a": 1}),
        (Point(1, 2), (1, 2)),
        ({np.int64(1): 2}, {1: 2}),
        ({Level.HIGH: 2}, {3: 2}),
    ],
)
def test_value_of_a_special_type_comes_back_as_the_simpler_one_it_equals(value, simpler):
    back = through_a_file(value)
    assert back == simpler == value
    assert type(back) is type(simpler)
    if isinstance(back, dict):
        assert [type(key) for key in back] == [type(key) for key in simpler]


def test_a_deque_keeps_its_limit_and_a_default_dictionary_its_factory():
    back = through_a_file({"deque": collections.deque([1], maxlen=1), "counts": collections.defaultdict(int)})
    back["deque"].append(2)
    back["counts"]["new"] += 1
    assert list(back["deque"]) == [2]
    assert back["counts"] == {"new": 1}


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.array(2.5), np.zeros(0, np.float32), np.array([True]), np.arange(6)[::-2]]
)
def test_an_array_comes_back_as_an_array(array):
    back = through_a_file({"array": array})["array"]
    assert type(back) is np.ndarray
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)
    assert back.shape == array.shape


def test_numpys_global_generator_comes_back():
    state = np.random.get_state()
    back = through_a_file(state)
    np.random.set_state(back)
    assert np.array_equal(np.random.get_state()[1], state[1])


TENSORS = {
    "bfloat16": torch.randn(3).bfloat16(),
    "float8": torch.randn(3).to(torch.float8_e4m3fn),
    "complex": torch.randn(3, dtype=torch.complex64),
    "bool": torch.tensor([True, False]),
    "uint16": torch.tensor([1, 65535], dtype=torch.uint16),
    "empty": torch.zeros(0, 3),
    "scalar": torch.tensor(2.5),
    "nan": torch.tensor([float("nan"), -0.0]),
    "transposed": torch.randn(2, 3).T,
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_a_tensor_comes_back_bit_by_bit(tensor):
    back = through_a_file([tensor])[0]
    assert back.dtype == tensor.dtype
    assert back.shape == tensor.shape
    assert back.stride() == tensor.stride()
    same = [item.contiguous().reshape(-1).view(torch.uint8) for item in (back, tensor)]
    assert torch.equal(*same)


@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants:UserWarning")
def test_a_sparse_tensor_comes_back():
    back = through_a_file([torch.eye(3).to_sparse()])[0]
    assert back.layout is torch.sparse_coo
    assert torch.equal(back.to_dense(), torch.eye(3))


def test_parameters_and_leaves_keep_what_they_are():
    parameter, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
    leaf = torch.zeros(1, requires_grad=True)
    back = through_a_file([parameter, frozen, leaf, leaf * 2])
    assert [type(item) for item in back] == [nn.Parameter, nn.Parameter, torch.Tensor, torch.Tensor]
    assert [item.requires_grad for item in back] == [True, False, True, False]
    assert all(item.is_leaf for item in back)


class Marked(torch.Tensor):
    pass


def was_on(kind, tensor):
    return {"__truestep__": "tensor", "value": tensor, "device": kind, "parameter": False, "grad": False}


def test_tensors_of_an_accelerator_go_where_they_are_asked_for_and_others_stay():
    state = {"moment": was_on("cuda", torch.ones(2)), "step": torch.tensor(3.0)}
    back = restored(state, torch.device("meta"))
    assert back["moment"].device.type == "meta"
    assert back["step"].device.type == "cpu"


def test_tensors_of_an_accelerator_that_is_not_here_come_to_the_cpu():
    there = torch.accelerator.current_accelerator(check_available=True)
    elsewhere = "mps" if there is None or there.type != "mps" else "cuda"
    assert restored(was_on(elsewhere, torch.ones(2))).device.type == "cpu"


def inner():
    return None


def looped():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "said", "remedy"),
    [
        (inner, "state['sampler']['fn'] cannot be saved: a function", "leave it out"),
        (lambda: 1, "cannot be saved: a function", "leave it out"),
        (torch.Generator(), "a Generator", r"get_state\(\)"),
        (Phase.WARM, "a Phase", ".value or .name"),
        (nn.Linear(1, 1), "a Linear", r"state_dict\(\)"),
        (int, "a type", "save its name"),
        (decimal.Decimal(1), "a Decimal", "leave it out"),
        (np.array([None]), "an array of object", "leave it out"),
        (np.array(["a"]), "an array of <U1", "leave it out"),
        (np.datetime64("2026-01-01"), "a datetime64", "leave it out"),
        (collections.defaultdict(lambda: 1), "a defaultdict of <lambda>", "leave it out"),
        (types.MappingProxyType({}), "a mappingproxy", "leave it out"),
        (torch.ones(1, device="meta"), "a tensor on the meta device", "a plain tensor with values"),
        (torch.ones(1).as_subclass(Marked), "a Marked, which is more than a tensor", "a plain tensor"),
        ({Phase.WARM: 1}, "the key", "leave it out|.value"),
        (looped(), "it contains itself", "leave it out"),
    ],
)
def test_what_would_not_come_back_is_named_by_its_place(value, said, remedy):
    with pytest.raises(UnsavableState) as caught:
        plain({"sampler": {"fn": value}})
    assert said in caught.value.happened
    assert "state['sampler']['fn']" in caught.value.happened
    assert re.search(remedy, caught.value.remedy)


def test_the_place_names_positions_in_lists():
    with pytest.raises(UnsavableState, match=r"state\['a'\]\[1\]\[0\] cannot"):
        plain({"a": [1, (inner,)]})


def test_the_same_list_twice_is_no_loop():
    shared = [1]
    assert plain({"a": shared, "b": shared}) == {"a": [1], "b": [1]}
