"""Inputs of models from batches of every kind, free dimensions and edge shapes."""

import sys

import numpy
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from truestep.errors import BadInputs, UsageError
from truestep.export.calls import Call, call_from
from truestep.export.examples import batches_in, calls_from, edge_calls
from truestep.export.factories import build
from truestep.export.outputs import compared
from truestep.export.shapes import example, free_dimensions
from truestep.export.tracing import is_plain, plain


class Two(nn.Module):
    def forward(self, tokens, lengths, mask=None, *, scale=None):
        return tokens


def test_a_tensor_is_the_only_argument():
    call = call_from(nn.Linear(2, 1), torch.ones(3, 2))
    assert (call.names, call.size, call.kwargs) == (("input",), 3, {})


def test_labels_of_a_tuple_and_of_a_mapping_are_left_out():
    x, y = torch.ones(3, 2), torch.zeros(3)
    assert call_from(nn.Linear(2, 1), (x, y)).tensors == (x,)
    assert call_from(Two(), (x, y, y, y)).tensors == (x, y)
    mapped = call_from(Two(), {"lengths": y, "tokens": x, "labels": y, "scale": y})
    assert (mapped.args, list(mapped.kwargs), mapped.names) == ((x, y), ["scale"], ("tokens", "lengths", "scale"))


def test_inputs_can_be_chosen():
    call = call_from(Two(), {"a": torch.ones(2)}, lambda batch: (batch["a"], batch["a"]))
    assert len(call.args) == 2


@pytest.mark.parametrize(
    ("batch", "said"),
    [({"labels": torch.ones(1)}, "no input of Two"), (("text", torch.ones(1)), "'tokens' of Two is a str")],
)
def test_batches_without_inputs_are_refused(batch, said):
    with pytest.raises(BadInputs, match=said):
        call_from(Two(), batch)


def test_an_empty_loader_is_refused():
    with pytest.raises(BadInputs, match="no batch was read"):
        calls_from(nn.Linear(2, 1), [], None, 4)


def test_dimensions_that_differ_are_free():
    calls = [Call((torch.ones(4, 3, length), torch.ones(5)), {}, ("x", "w")) for length in (6, 7)]
    dims = free_dimensions(calls)
    assert {name: sorted(free) for name, free in dims.items()} == {"x": [0, 2], "w": []}
    assert example(calls, dims).tensors[0].shape == (4, 3, 7)


def test_a_batch_of_one_is_traced_with_two():
    calls = [Call((torch.ones(1, 3),), {}, ("x",))]
    assert example(calls, free_dimensions(calls)).size == 2


@pytest.mark.parametrize("dynamic", [{"y": [1]}, {"x": [2]}])
def test_unknown_dimensions_are_refused(dynamic):
    with pytest.raises(BadInputs):
        free_dimensions([Call((torch.ones(2, 3),), {}, ("x",))], dynamic)


def test_edges_have_one_two_an_odd_number_and_all_samples():
    tokens = torch.arange(40).view(8, 5)
    calls = [Call((tokens, torch.full((8,), 5)), {}, ("tokens", "lengths"))]
    edges = edge_calls(calls, free_dimensions(calls))
    assert [kind for kind, _ in edges] == ["edge"] * 4 + ["short"] * 3
    assert [tuple(edge.tensors[0].shape) for _, edge in edges] == [
        (1, 5),
        (2, 5),
        (7, 5),
        (8, 5),
        (2, 1),
        (2, 2),
        (2, 3),
    ]
    assert edges[-3][1].tensors[1].tolist() == [1, 1]


def test_files_of_each_kind_are_read(tmp_path):
    x = torch.arange(6.0).view(3, 2)
    torch.save([x, x], tmp_path / "two.pt")
    save_file({"x": x}, tmp_path / "x.safetensors")
    numpy.save(tmp_path / "x.npy", x.numpy())
    numpy.savez(tmp_path / "x.npz", x=x.numpy())
    assert len(list(batches_in(tmp_path / "two.pt"))) == 2
    assert torch.equal(next(batches_in(tmp_path / "x.safetensors"))["x"], x)
    assert torch.equal(next(batches_in(tmp_path / "x.npy")), x)
    assert torch.equal(next(batches_in(tmp_path / "x.npz"))["x"], x)


@pytest.mark.parametrize(("name", "said"), [("x.txt", "is not a file of tensors"), ("x.pt", "cannot be read")])
def test_other_files_are_refused(tmp_path, name, said):
    (tmp_path / name).write_text("text")
    with pytest.raises(BadInputs, match=said):
        list(batches_in(tmp_path / name))


def test_outputs_of_objects_become_plain():
    from collections import namedtuple

    pair = namedtuple("Pair", "a b")(torch.ones(1), None)
    assert not is_plain(pair)
    assert plain(pair) == (torch.ones(1),)
    assert plain({"a": {"b": 3}}) is None


@pytest.mark.parametrize(
    ("one", "other", "fault", "relative"),
    [
        ([2.0, 4.0], [2.0, 4.4], "", 0.1),
        ([1.0, float("nan")], [1.0, float("nan")], "", 0.0),
        ([1.0, float("nan")], [1.0, 2.0], "", float("inf")),
        ([1.0, 2.0], [1.0, float("inf")], "", float("inf")),
        ([0.0], [1e-9], "", float("inf")),
    ],
)
def test_differences_are_relative_to_the_largest_output(one, other, fault, relative):
    found = compared([torch.tensor(one)], [torch.tensor(other)])
    assert found["fault"] == fault
    assert found["relative"] == pytest.approx(relative, rel=1e-5)


def test_types_and_numbers_of_outputs_are_compared():
    assert "int64, expected float32" in compared([torch.ones(2)], [torch.ones(2, dtype=torch.int64)])["fault"]
    assert compared([torch.ones(2)], [])["fault"] == "0 outputs, expected 1"


SCRIPT = """
from __future__ import annotations

import truestep as ts
from torch import nn

WIDTH = 2 * 4
text = "abc".upper()
later = text

class Net(nn.Linear):
    wide: Wide | None = None

    def __init__(self):
        super().__init__(4, WIDTH)

def net(width):
    return nn.Linear(4, width)

def of_text():
    return nn.Linear(4, len(text))

run = ts.Run()
raise SystemExit("the script runs")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "train_now", raising=False)
    (tmp_path / "train_now.py").write_text(SCRIPT)
    yield tmp_path / "train_now.py"
    sys.modules.pop("train_now", None)


def test_the_definitions_of_a_script_are_read_and_its_training_does_not_start(script):
    assert build("train_now:net", {"width": 3}).out_features == 3
    assert build("train_now:Net", {}).out_features == 8
    assert sys.modules["train_now"].__file__ == str(script)
    assert not hasattr(sys.modules["train_now"], "run")


def test_a_value_that_a_script_computes_is_named(script):
    with pytest.raises(UsageError, match=r"train_now.py needs text, which the script computes: .* line 23 of "):
        build("train_now:of_text", {})
    with pytest.raises(UsageError, match="no 'loader' among its definitions; the rest was not run") as caught:
        build("train_now:loader", {})
    assert caught.value.expected == "expected one of Net, net, of_text"


def test_a_definition_that_cannot_be_made_without_the_script_is_an_error(script):
    script.write_text("import truestep as ts\nsizes = tuple(range(3))\ndef net(width=sizes[0]): ...\nrun = ts.Run()\n")
    for _ in range(2):
        with pytest.raises(UsageError, match="needs sizes, which the script computes"):
            build("train_now:net", {})


@pytest.mark.parametrize(
    ("factory", "arguments", "said"),
    [
        ("torch.nn:Linear", {}, "cannot be called with the arguments none"),
        ("torch.nn:Linearly", {}, "has no 'Linearly'"),
        ("no_such_module:net", {}, "module 'no_such_module' was not found"),
        ("torch.nn", {}, "names no object"),
        ("builtins:dict", {}, "returns a dict"),
    ],
)
def test_factories_that_do_not_fit_are_refused(factory, arguments, said):
    with pytest.raises(UsageError, match=said):
        build(factory, arguments)
