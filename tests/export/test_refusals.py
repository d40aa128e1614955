"""A refusal names the line of the model that stops an export, and the model is left as it was."""

import inspect
import linecache
import logging
import random
import re
import sys

import pytest
import torch
import unexportable
from torch import nn

from truestep.errors import BadInputs, NotExportable
from truestep.export import export
from truestep.export.calls import call_from
from truestep.export.examples import edge_calls
from truestep.export.refusals import quiet
from truestep.export.shapes import free_dimensions
from truestep.export.tracing import traced

CAUSES = {
    "Branch": "data-dependent-control-flow",
    "Assertion": "data-dependent-control-flow",
    "Item": "value-of-a-tensor",
    "Loop": "value-of-a-tensor",
    "Packed": "packed-sequence",
    "Numpy": "numpy-in-forward",
    "Text": "tensor-as-text",
    "InPlace": "in-place-on-input",
    "InPlaceOfView": "in-place-on-input",
    "Counter": "side-effect",
    "Buffer": "side-effect",
    "Noise": "random-in-forward",
    "Dropout": "dropout-always-on",
    "FixedView": "fixed-size",
    "FixedZeros": "fixed-size",
    "FixedBranch": "fixed-size",
    "PythonNoise": "python-random",
    "Object": "output-is-no-tensor",
    "Float": "value-of-a-tensor",
    "Flag": "value-of-a-tensor",
    "Ternary": "data-dependent-control-flow",
    "Until": "data-dependent-control-flow",
    "Compared": "data-dependent-control-flow",
    "NotANumber": "data-dependent-control-flow",
    "FromValues": "tensor-of-tensors",
    "Appended": "side-effect",
    "Recurrent": "side-effect",
    "InPlaceOfPart": "in-place-on-input",
    "InPlaceLayer": "in-place-on-input",
    "Sampled": "random-in-forward",
    "Generator": "random-in-forward",
    "Distribution": "distribution-in-forward",
    "New": "layer-in-forward",
    "DroppedAttention": "dropout-always-on",
    "NumpyInFunction": "numpy-in-forward",
    "Gradient": "gradient-in-forward",
    "Backward": "gradient-in-forward",
    "Data": "data-of-a-tensor",
    "FirstToken": "fixed-size",
    "Rows": "fixed-size",
    "NumberedRows": "fixed-size",
    "ManyLayers": "fixed-size",
    "LargeBatch": "fixed-size",
    "OneSample": "fixed-size",
    "FixedState": "fixed-size",
    "Cached": "fixed-size",
    "Sparse": "sparse-output",
    "Scripted": "scripted-model",
    "OfTheWorld": "not-repeatable",
}
MENDS = {
    "FirstToken": "write x.shape[0], without len() and int()",
    "Rows": "compute all elements at once",
    "NumberedRows": "compute all elements at once",
    "ManyLayers": "take the size from the input",
    "FixedView": "take the size from the input",
    "LargeBatch": "write code that is right for every size",
    "FixedBranch": "write code that is right for every size",
    "OneSample": "write code that is right for every size",
}
"""Beginnings of the mends of fixed sizes."""


def trace(model, *batches, **options):
    calls = [call_from(model, batch) for batch in batches or (torch.randn(8, 4),)]
    dims = free_dimensions(calls, **options)
    return traced(model, calls, dims, edge_calls(calls, dims))


def test_every_model_has_its_cause():
    named = {name for name, kind in inspect.getmembers(unexportable, inspect.isclass) if issubclass(kind, nn.Module)}
    assert named - {"Base"} == set(CAUSES)


FIRST = list(CAUSES).index("Float")
"""The models from here on are checked by `make programs`."""


@pytest.mark.parametrize(
    "name", [*list(CAUSES)[:FIRST], *(pytest.param(name, marks=pytest.mark.program) for name in list(CAUSES)[FIRST:])]
)
def test_the_line_that_stops_an_export_is_named(name):
    model, batch = getattr(unexportable, name)(), torch.randn(8, 4)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    state, python = torch.get_rng_state(), random.getstate()
    with pytest.raises(NotExportable) as caught:
        trace(model, batch)
    error = caught.value
    assert error.cause == CAUSES[name]
    assert error.remedy.startswith(MENDS.get(name, ""))
    assert error.remedy
    place = re.search(r"unexportable\.py:(\d+): `", error.happened)
    if "# stops" in inspect.getsource(type(model)):
        assert place, error
        assert linecache.getline(unexportable.__file__, int(place[1])).rstrip().endswith("# stops"), error
    assert model.training
    assert (model.calls, model.seen) == (0, [])
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert random.getstate() == python
    assert torch.equal(torch.get_rng_state(), state)


def test_a_fixed_dimension_is_named():
    with pytest.raises(NotExportable) as caught:
        trace(unexportable.FixedBranch())
    assert "dimension 0 of x is fixed to 8" in caught.value.expected


def test_a_fixed_dimension_is_named_where_logging_was_configured(monkeypatch):
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    monkeypatch.setattr(logger, "disabled", True)
    with pytest.raises(NotExportable) as caught:
        trace(unexportable.FixedBranch())
    assert "dimension 0 of x is fixed to 8" in caught.value.expected
    assert logger.disabled


def test_nothing_is_logged_and_printed_until_the_end(caplog, capsys):
    logger = logging.getLogger("torch.export")
    with quiet():
        logger.critical("inside")
        print("inside", file=sys.stderr)
    logger.critical("behind")
    print("behind", file=sys.stderr)
    assert caplog.messages == ["behind"]
    assert capsys.readouterr().err == "behind\n"


def test_a_fixed_batch_can_be_asked_for():
    assert trace(unexportable.FixedBranch(), fixed_batch=True).program is not None


class Singular(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x.unsqueeze(2) @ x.unsqueeze(1))


@pytest.mark.program
def test_an_operator_that_onnx_lacks_is_named_with_its_line(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.raises(NotExportable, match=r"return torch\.linalg\.svdvals") as caught:
        export(Singular(), tmp_path / "made", to="onnx", batches=[torch.randn(8, 4)])
    assert caught.value.cause == "unknown-operator"
    assert "operator aten._linalg_svd" in caught.value.expected


class Healthy(nn.Module):
    """Layers that are random in train mode, and attributes that no output depends on."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.rnn = nn.LSTM(4, 4, 2, dropout=0.1, batch_first=True)
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout()
        self.last = None

    def forward(self, x):
        rows = x.unsqueeze(1).repeat(1, 3, 1)
        rows = self.rnn(self.encoder(self.attention(rows, rows, rows)[0]))[0]
        self.last = rows
        result = self.dropout(self.norm(rows[:, -1]))
        result += 1
        return result


@pytest.mark.program
def test_layers_of_torch_are_exported_in_eval_mode_and_restored():
    model = Healthy()
    model.norm.eval()
    modes = {name: module.training for name, module in model.named_modules()}
    found = trace(model)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert model.last is None
    (note,) = found.notes
    assert note.startswith("self.last changes in forward (")
    x = torch.randn(3, 4)
    torch.testing.assert_close(found.program.module()(x), model.eval()(x))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(9, 4)

    def forward(self, tokens, lengths):
        mask = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        pairs = tokens[:, 1:] * 2 % 9
        return (self.word(tokens) * mask.unsqueeze(2)).sum(1) + self.word(pairs).sum(1)


def test_the_length_of_texts_is_free_down_to_one_word():
    model = Words()
    batches = [(torch.randint(0, 9, (4, length)), torch.full((4,), length)) for length in (5, 7)]
    module = trace(model, *batches).program.module()
    for size, length in ((1, 1), (2, 2), (3, 30)):
        given = torch.randint(0, 9, (size, length)), torch.full((size,), length)
        torch.testing.assert_close(module(*given), model(*given))


class Attending(nn.Module):
    """A graph of it that assumes nothing on sizes refuses a batch of one, in torch 2.13."""

    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(9, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

    def forward(self, tokens):
        later = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.layer(self.word(tokens), src_mask=later, is_causal=True)


@pytest.mark.program
def test_a_transformer_accepts_one_sample_and_one_token():
    model = Attending()
    module = trace(model, *(torch.randint(0, 9, (4, length)) for length in (5, 7))).program.module()
    for size, length in ((1, 5), (3, 1), (1, 1)):
        given = torch.randint(0, 9, (size, length))
        torch.testing.assert_close(module(given), model.eval()(given))


def test_a_model_that_fails_in_eager_is_not_blamed_on_the_export():
    with pytest.raises(BadInputs) as caught:
        trace(nn.Linear(5, 1))
    assert "Linear cannot be called with a batch" in caught.value.happened
