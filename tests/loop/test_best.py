"""What "best" holds: the weights that were evaluated, wherever in the loop that was."""

import pytest
import torch
from torch import nn

from truestep import Run, load_weights
from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.listing import find

X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
DATA = torch.utils.data.TensorDataset(X, X.sum(1, keepdim=True))


def train(out, where, *, metrics=(0.5, 0.4, 0.9), mode="min", stop=None, average=False, **settings):
    """Train, and evaluate at three batches; return the weights at each of them."""
    settings = {"max_epochs": 1, "save_every_n_steps": 2, "resume": "auto"} | settings
    run = Run(out=out, device="cpu", watch=False, progress=False, **settings)
    seen = []
    with run:
        model = run.model(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        judged = run.ema(model, 0.5).model if average else model
        loader = run.loader(DATA, batch_size=8, shuffle=True)
        run.state.n = run.state.get("n", 0)

        def evaluate():
            seen.append({key: value.clone() for key, value in judged.state_dict().items()})
            run.save(metric=metrics[len(seen) - 1], mode=mode)

        for _ in run.epochs():
            for x, y in run.train(loader, model):
                if run.global_step == stop:
                    run.discard()
                    return seen
                if where == "before" and run.state.n in (1, 3, 5):
                    evaluate()
                run.step((model(x) - y).square().mean())
                if where == "after" and run.state.n in (1, 3, 5):
                    evaluate()
                run.state.n += 1
            if where == "epoch":
                evaluate()
    return seen


def holds(out, weights, name="model"):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    load_weights(model, out / "checkpoints" / "best", name=name)
    return all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("settings", [{}, {"accumulate": 4}, {"asynchronous": True}, {"mode": "max"}])
def test_best_holds_what_was_evaluated(tmp_path, where, settings):
    seen = train(tmp_path, where, **settings)
    best = 2 if settings.get("mode") == "max" else 1
    assert holds(tmp_path, seen[best])
    assert find(tmp_path / "checkpoints" / "best").metric == (0.9 if best == 2 else 0.4)
    assert len(list((tmp_path / "checkpoints").glob("evaluated-*"))) <= 1, "the best only"


def test_best_holds_the_average_that_was_evaluated(tmp_path):
    seen = train(tmp_path, "before", average=True)
    assert holds(tmp_path, seen[1], name="ema")


def test_weights_that_did_not_change_are_written_once(tmp_path):
    train(tmp_path, "epoch")
    assert not list((tmp_path / "checkpoints").glob("evaluated-*"))
    assert find(tmp_path / "checkpoints" / "best").step == 8


def test_a_checkpoint_has_no_metric_of_other_weights(tmp_path):
    train(tmp_path, "before", keep_last=50)
    metrics = [find(path).metric for path in sorted((tmp_path / "checkpoints").glob("step-*"))]
    assert metrics == [None] * len(metrics)


def test_what_a_killed_run_evaluated_is_kept(tmp_path):
    first = train(tmp_path, "before", stop=5)
    train(tmp_path, "before", metrics=(0.9, 0.9, 0.9))
    assert holds(tmp_path, first[1])


def test_a_run_does_not_resume_from_weights_alone(tmp_path):
    train(tmp_path, "before")
    with pytest.raises(BadCheckpoint, match=r"evaluated weights(.|\n)*init_from="):
        Run(out=tmp_path, resume=tmp_path / "checkpoints" / "best", device="cpu", watch=False)
    begun = Run(out=tmp_path / "new", init_from=tmp_path / "checkpoints" / "best", device="cpu", watch=False)
    begun.close()


def test_the_step_that_a_run_was_resumed_at_keeps_its_metric_when_it_is_saved_again(tmp_path):
    def saved(resume):
        run = Run(out=tmp_path, device="cpu", watch=False, resume=resume, keep_last=1)
        run.model(nn.Linear(3, 1))
        return run

    with saved(None) as run:
        run.save(metric=0.5)
    with saved("auto") as run:
        run.save()
    assert find(tmp_path / "checkpoints" / "best").manifest.metric == 0.5
