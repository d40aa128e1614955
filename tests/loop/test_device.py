"""Choosing a device, and moving batches of every shape."""

import dataclasses
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import MutableMapping
from types import MappingProxyType

import pytest
import torch

from truestep.errors import UnknownDevice
from truestep.loop.process.device import pick, to_device

META = torch.device("meta")
"""A device that every machine has and no tensor starts on."""
CPU = torch.device("cpu")

Pair = namedtuple("Pair", ["x", "y"])


@dataclasses.dataclass
class Sample:
    x: torch.Tensor
    name: str
    derived: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        self.derived = self.x * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: torch.Tensor
    n: int = 3


class Items(list):
    pass


def x():
    return torch.arange(4.0)


def test_auto_is_the_accelerator_of_this_machine_or_the_cpu():
    expected = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else CPU
    assert pick().type == pick("auto").type == expected.type


@pytest.mark.parametrize("name", ["cpu", "cpu:0", torch.device("cpu")])
def test_the_cpu_is_always_there(name):
    assert pick(name).type == "cpu"


@pytest.mark.parametrize("name", ["gpu", "", "meta", "cuda:x"])
def test_a_name_that_is_no_device_is_reported_with_those_that_are(name):
    with pytest.raises(UnknownDevice) as raised:
        pick(name)
    assert f'"{name}" is not a device to train on' in str(raised.value)
    assert '"auto"' in raised.value.expected


class Accelerators:
    """A machine with some number of accelerators of one kind."""

    def __init__(self, kind, count):
        self.kind, self.count = kind, count

    def is_available(self):
        return self.count > 0

    def current_accelerator(self):
        return torch.device(self.kind)

    def device_count(self):
        return self.count


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "xpu"])
def test_a_device_that_is_not_here_is_reported_with_the_one_that_is(monkeypatch, name):
    monkeypatch.setattr(torch, "accelerator", Accelerators("cuda", 0))
    with pytest.raises(UnknownDevice) as raised:
        pick(name)
    assert f'"{name}" is not available: t' in str(raised.value)
    assert raised.value.remedy == 'use "cpu" on this machine'


@pytest.mark.parametrize(
    ("name", "kind", "chosen"),
    [("auto", "cuda", "cuda"), ("auto", "mps", "mps"), ("cuda:1", "cuda", "cuda:1"), ("cpu", "cuda", "cpu")],
)
def test_an_accelerator_is_chosen_where_it_is(monkeypatch, name, kind, chosen):
    monkeypatch.setattr(torch, "accelerator", Accelerators(kind, 2))
    assert str(pick(name)) == chosen


def test_a_number_beyond_the_last_device_is_reported(monkeypatch):
    monkeypatch.setattr(torch, "accelerator", Accelerators("cuda", 2))
    with pytest.raises(UnknownDevice) as raised:
        pick("cuda:2")
    assert '"cuda:2" is not available: the last cuda device is number 1' in str(raised.value)
    assert raised.value.expected == 'expected "cuda" or "cuda:0" to "cuda:1"'


def test_another_kind_of_accelerator_is_reported(monkeypatch):
    monkeypatch.setattr(torch, "accelerator", Accelerators("cuda", 2))
    with pytest.raises(UnknownDevice) as raised:
        pick("mps")
    assert raised.value.expected == 'expected "auto", "cpu" or "cuda"'


NESTED = {
    "tensor": x,
    "tuple": lambda: (x(), x()),
    "list": lambda: [x(), [x()]],
    "list of a class": lambda: Items([x(), 1]),
    "named tuple": lambda: Pair(x(), (x(), "a")),
    "dict": lambda: {"x": x(), "rest": {"y": x(), "names": ["a"]}},
    "ordered dict": lambda: OrderedDict(x=x(), y=x()),
    "default dict": lambda: defaultdict(list, x=x()),
    "user dict": lambda: UserDict(x=x()),
    "dataclass": lambda: Sample(x(), "a"),
    "frozen dataclass": lambda: Frozen(x()),
    "packed sequence": lambda: torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(2, 2)]),
    "nested tensors in a set of things": lambda: (None, 3, 2.5, True, "a", b"b", x(), {"p": Pair(x(), [x()])}),
    "sparse": lambda: {"edges": torch.eye(3).to_sparse()},
}
each_batch = pytest.mark.parametrize("made", NESTED.values(), ids=NESTED.keys())


def tensors(value):
    """Every tensor in a batch, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return [value.data]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict | UserDict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, list | tuple) else []


@each_batch
@pytest.mark.parametrize("non_blocking", [False, True])
def test_every_tensor_is_moved_and_every_type_kept(made, non_blocking):
    batch = made()
    moved = to_device(batch, META, non_blocking)
    assert type(moved) is type(batch)
    assert [tensor.device for tensor in tensors(moved)] == [META] * len(tensors(batch))
    assert [tensor.shape for tensor in tensors(moved)] == [tensor.shape for tensor in tensors(batch)]


@each_batch
def test_what_was_given_is_not_written_to(made):
    batch = made()
    held = tensors(batch)
    to_device(batch, META)
    assert all(now is then for now, then in zip(tensors(batch), held, strict=True))
    assert {tensor.device for tensor in held} == {CPU}


@each_batch
def test_a_batch_that_is_there_is_returned_itself(made):
    batch = made()
    assert to_device(batch, CPU) is batch


def test_what_a_type_carries_besides_its_items_is_kept():
    counts = to_device(defaultdict(list, x=x()), META)
    assert counts.default_factory is list
    assert list(to_device(OrderedDict(b=x(), a=x()), META)) == ["b", "a"]
    assert to_device(Sample(x(), "a"), META).name == "a"
    assert to_device(Frozen(x(), 7), META).n == 7


class Records(MutableMapping):
    """A mapping that shares its records with a shallow copy."""

    def __init__(self, records):
        self.records = records

    def __getitem__(self, key):
        return self.records[key]

    def __setitem__(self, key, value):
        self.records[key] = value

    def __delitem__(self, key):
        del self.records[key]

    def __iter__(self):
        return iter(self.records)

    def __len__(self):
        return len(self.records)


@pytest.mark.parametrize("kind", [MappingProxyType, Records])
def test_a_mapping_of_another_class_becomes_a_dict(kind):
    batch = kind({"x": x(), "n": 1})
    moved = to_device(batch, META)
    assert type(moved) is dict
    assert moved["x"].device == META
    assert moved["n"] == 1
    assert batch["x"].device == CPU


def test_a_models_output_is_moved_with_its_attributes():
    outputs = pytest.importorskip("transformers.modeling_outputs", reason="needs transformers")
    moved = to_device(outputs.BaseModelOutput(last_hidden_state=x()), META)
    assert isinstance(moved, outputs.BaseModelOutput)
    assert moved.last_hidden_state.device == moved["last_hidden_state"].device == META


@pytest.mark.parametrize("value", [None, 3, "text", torch.Size([2]), torch.float32, range(3), {1, 2}, len])
def test_everything_else_stays_the_same_object(value):
    assert to_device(value, META) is value
    assert to_device([value], META)[0] is value


class Graph:
    """Moves itself, and takes no keyword."""

    def __init__(self):
        self.moves = []

    def to(self, device):
        self.moves.append(device)
        return self


class Blocking(Graph):
    def to(self, device, *, non_blocking=False):
        self.moves.append((device, non_blocking))
        return self


class Anything(Graph):
    def to(self, *args, **kwargs):
        self.moves.append((args, kwargs))
        return self


@pytest.mark.parametrize("non_blocking", [False, True])
def test_what_can_move_itself_is_asked_to(non_blocking):
    graph, blocking, anything = Graph(), Blocking(), Anything()
    assert to_device([graph, blocking, anything], META, non_blocking) == [graph, blocking, anything]
    assert graph.moves == [META]
    assert blocking.moves == [(META, non_blocking)]
    assert anything.moves == [((META,), {"non_blocking": True} if non_blocking else {})]


def test_copies_towards_the_cpu_are_always_awaited():
    blocking = Blocking()
    to_device(blocking, CPU, non_blocking=True)
    assert blocking.moves == [(CPU, False)]


def test_a_tokenizers_batch_is_moved_whole():
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    batch = transformers.BatchEncoding({"input_ids": torch.ones(2, 3, dtype=torch.long), "text": ["a", "b"]})
    moved = to_device({"inputs": batch, "labels": x()}, META)
    assert isinstance(moved["inputs"], transformers.BatchEncoding)
    assert moved["inputs"]["input_ids"].device == META
    assert moved["inputs"]["text"] == ["a", "b"]
