"""Names of objects, as they are written at a site."""

import linecache

import pytest

from truestep.events import Site
from truestep.probes.context.names import arguments, target

NAMES = ("input", "target")


def site_of(line, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(line + "\n")
    linecache.checkcache(str(path))
    return Site(str(path), 1, 0, 1, len(line.encode()))


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("mse_loss(pred, y)", ("pred", "y")),
        ("self.criterion(out.logits, batch['y'].float())", ("out.logits", "batch['y'].float()")),
        ("F.mse_loss(target=y, input=model(x))", ("model(x)", "y")),
        ("mse_loss(a - b, y)", ("input", "y")),
        ("mse_loss(*pair)", NAMES),
        ("mse_loss(prédit, y)", ("prédit", "y")),
        (f"mse_loss({'long' * 11}, y)", ("input", "y")),
        ("loss +", NAMES),
    ],
)
def test_the_arguments_of_a_call(call, given, tmp_path):
    assert arguments(site_of(call, tmp_path), NAMES) == given


def test_without_a_site_the_parameters_keep_their_names():
    assert arguments(None, NAMES) == NAMES


@pytest.mark.parametrize(
    ("line", "value", "name"),
    [
        ("train = make()", "make()", "train"),
        ("self.train: Loader = make()", "make()", "self.train"),
        ("train, valid = make(1), make(2)", "make(1)", "train"),
        ("train, valid = make(1), make(2)", "make(2)", "valid"),
        ("    self.train, valid = make(1), wrap(make(2))", "make(2)", "valid"),
        ("train, valid = make()", "make()", "loader"),
        ("run(train, make())", "make()", "loader"),
    ],
)
def test_the_variable_of_a_construction(line, value, name, tmp_path):
    at = line.index(value)
    site = site_of(line, tmp_path)
    assert target(Site(site.path, 1, at, 1, at + len(value)), "loader") == name
