"""Checkpoints of a supervised run have its observations; an error in reading them is no error of the training."""

import json

import pytest
import torch
from torch import nn

from truestep import Run, data
from truestep.config import Options
from truestep.loop.checkpoint.listing import find
from truestep.loop.inference.observed import observed_in
from truestep.supervision import Session


def train(out):
    with Run(out=out, seed=1, max_epochs=2, device="cpu", progress=False) as run:
        loader = run.loader(data.tensors(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4)
        model = run.model(nn.Linear(4, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step((model(x) - y).square().mean())
            run.save()
    return find(out)


def test_each_checkpoint_has_the_observations_until_it_was_saved(tmp_path):
    with Session(Options()):
        last = train(tmp_path)
    (observed,) = observed_in(last)
    assert (observed.steps, observed.findings, observed.ranks, observed.limit) == (6, (), 1, "")
    assert observed.ledger["steps"].startswith("6 of SGD")
    (first,) = observed_in(find(tmp_path / "checkpoints" / "step-000003"))
    assert first.steps == 3
    assert json.loads((last.path / "supervision.json").read_text())["processes"][0]["steps"] == 6


def test_a_training_without_supervision_has_none(tmp_path):
    last = train(tmp_path)
    assert "supervision.json" not in last.manifest.files
    assert observed_in(last) == ()


def test_an_error_in_reading_them_is_in_the_report_and_the_training_goes_on(tmp_path, monkeypatch):
    def broken(_):
        raise RuntimeError("the ledger is broken")

    with Session(Options()) as session:
        monkeypatch.setattr(Session, "ledger_so_far", broken)
        last = train(tmp_path)
    assert last.step == 6
    assert observed_in(last) == ()
    summary = session.stop()
    assert len(summary.internal_errors) == 2
    assert all("the ledger is broken" in error for error in summary.internal_errors)


@pytest.mark.parametrize("ended", [False, True])
def test_a_session_that_has_ended_counts_until_its_end(tmp_path, ended):
    from truestep.loop.inference.observed import Observed

    observed = Observed()
    with Session(Options()):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        if ended:
            observed.so_far()
    assert [one.steps for one in observed.so_far()] == ([1] if ended else [])
