"""A shape that did not fit is named beneath torch's own error, and nothing else is."""

import io
import re

import pytest
import torch
from torch import nn

from truestep import EMA, Run
from truestep.model.boundary import WithPostMortem


@pytest.fixture
def run():
    with Run(device="cpu", watch=False) as run:
        yield run


def told(error):
    """The notes of an error, as one text."""
    return "\n".join(getattr(error.value, "__notes__", []))


# Before Python 3.13, pytest's assertions keep a function's locals from being read; these have none.
def call(run, model, x):
    with run.autocast():
        return model(x)


def loss_of(run, criterion, model, labels):
    x = torch.ones(3, 4)
    with run.autocast():
        return criterion(model(x), labels)


def call_two(run, model, extra):
    with run.autocast():
        return model({"ids": torch.ones(3, dtype=torch.long)}, extra=extra)


def dense():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def pictures():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))


@pytest.mark.parametrize(
    ("make", "x", "says"),
    [
        (
            dense,
            torch.ones(3, 4, dtype=torch.float64),
            r"`x` is float64, the weights of `model\.0` are float32.*x\.float",
        ),
        (dense, torch.ones(3, 4, device="meta"), r"`x` is on meta, the weights of `model\.0` are on cpu"),
        (dense, torch.ones(3, 5), r"`model\.0` takes 4 numbers per sample and was given 5"),
        (dense, torch.ones(3, 2, 2), r"takes 4 numbers per sample and was given them unflattened.*x\.flatten\(1\)"),
        (
            pictures,
            torch.ones(2, 4, 4, 3),
            r"channels are last, but torch expects them second.*x\.permute\(0, 3, 1, 2\)",
        ),
        (pictures, torch.ones(2, 3, 4, 4).byte(), r"`x` is uint8, the weights.*x\.float\(\) / 255"),
        (lambda: nn.Embedding(5, 2), torch.ones(3), r"`model` looks rows up by whole numbers and was given float32"),
    ],
    ids=["numpy-float64", "device", "last-dimension", "unflattened", "channels-last", "uint8", "float-indices"],
)
def test_what_does_not_fit_a_model_is_named_beneath_torchs_error(make, x, says, run):
    model = run.model(make())
    with pytest.raises(RuntimeError) as error:
        call(run, model, x)
    assert re.search(says, told(error), re.DOTALL), told(error)
    assert len(error.value.__notes__) == 1
    assert type(error.value) is RuntimeError
    assert not str(error.value).startswith("post-mortem")  # torch's own message is where it was


@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss(), nn.functional.cross_entropy], ids=["module", "function"])
def test_a_loss_on_two_devices_names_both(criterion, run):
    model = run.model(dense())
    with pytest.raises(RuntimeError, match="device") as error:
        loss_of(run, criterion, model, torch.zeros(3, dtype=torch.long, device="meta"))
    assert "the input of the loss is on cpu, `labels` is on meta" in told(error)


def test_a_loss_of_values_without_names_names_their_parts(run):
    model = run.model(dense())
    with pytest.raises(RuntimeError, match="device") as error:
        with run.autocast():
            nn.functional.mse_loss(model(torch.ones(3, 4)), torch.ones(3, 2, device="meta"))
    assert "the input of the loss is on cpu, the target of the loss is on meta" in told(error)


def test_the_same_is_reported_for_inputs_by_keyword_and_in_mixed_precision():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.out = nn.Embedding(5, 4), nn.Linear(4, 2)

        def forward(self, tokens, *, extra):
            return self.out(self.rows(tokens["ids"]) + extra)

    with Run(device="cpu", precision="bf16", watch=False) as run:
        model = run.model(Two())
        call_two(run, model, torch.ones(3, 4))
        with pytest.raises(RuntimeError, match="device") as error:
            call_two(run, model, torch.ones(3, 4, device="meta"))
    assert "`extra` is on meta, the weights of Two are on cpu" in told(error)
    assert len(error.value.__notes__) == 1


def test_inputs_in_dicts_and_lists_are_named_by_what_leads_to_them(run):
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 2)

        def forward(self, batch, *others):
            return self.out(batch["x"].exp() * batch["scale"].exp() + others[0][1])

    model = run.model(Many())
    x = torch.ones(3, 4)
    for batch, others, named in (
        ({"x": x, "scale": x.to("meta")}, [x, x], "`batch['scale']` is on meta"),
        ({"x": x, "scale": x}, [x, x.to("meta")], "`others[0][1]` is on meta"),
    ):
        with pytest.raises(RuntimeError, match="device") as error, run.autocast():
            model(batch, others)
        assert f"{named}, the weights of Many are on cpu" in told(error)


def test_errors_of_the_program_are_left_alone(run):
    class Strict(nn.Module):
        def forward(self, x):
            raise ValueError("mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)")

    model = run.model(Strict())
    with pytest.raises(ValueError, match="cannot be multiplied") as error:
        with run.autocast():
            model(torch.ones(1))
    assert told(error) == ""
    with pytest.raises(KeyError) as error:
        with run.autocast():
            {}["x"]
    assert told(error) == ""


def test_a_model_called_while_an_error_is_handled_adds_nothing_to_it(run):
    class Silent(nn.Module):
        def forward(self, x):
            return None

    model, silent = run.model(dense()), run.model(Silent())
    with pytest.raises(RuntimeError) as error:
        try:
            torch.ones(2, 3) @ torch.ones(2, 3)
        except RuntimeError:
            model(torch.ones(1, 4))
            silent(torch.ones(1))
            raise
    assert told(error) == ""


def test_an_error_that_is_caught_and_raised_again_is_reported_once(run):
    model = run.model(dense())
    x = torch.ones(3, 5)
    with pytest.raises(RuntimeError) as error:
        with run.autocast():
            try:
                model(x)
            except RuntimeError:
                raise
    assert len(error.value.__notes__) == 1


def test_an_evaluation_and_an_average_tell_too(run):
    model = EMA(run.model(dense())).model
    x = torch.ones(3, 5)
    with pytest.raises(RuntimeError) as error, run.evaluate(model):
        model(x)
    assert "takes 4 numbers per sample and was given 5" in told(error)
    with pytest.raises(RuntimeError) as error:
        run.predict(model, run.loader(torch.ones(6, 5), batch_size=3))
    assert "takes 4 numbers per sample and was given 5" in told(error)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_nothing_is_attached_to_the_model(run):
    model = run.model(dense())
    assert not model._forward_hooks
    file = io.BytesIO()
    torch.save(model, file)
    assert b"truestep" not in file.getvalue()
    x = torch.ones(3, 4)
    assert torch.jit.script(model)(x).equal(model(x))


def test_the_context_of_the_forward_pass_does_what_the_one_inside_does():
    seen = []

    class Inner:
        def __enter__(self):
            seen.append("in")
            return 7

        def __exit__(self, *raised):
            seen.append(raised[0])
            return True

    with WithPostMortem(Inner()) as value:
        raise RuntimeError
    assert value == 7
    assert seen == ["in", RuntimeError]
