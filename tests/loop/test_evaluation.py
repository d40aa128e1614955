"""Evaluation and inference: switches, means, predictions, metrics."""

from collections import namedtuple

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from truestep import Run
from truestep.errors import BadLoader, BadPart
from truestep.testing import assert_clean


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 4))


def data(size=10):
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(size, 3, generator=generator), torch.arange(size) % 4)


def test_both_switches_are_put_back_after_an_exception():
    run, model = Run(device="cpu"), net()
    model[1].eval()
    with pytest.raises(KeyError), run.evaluate(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        raise KeyError
    assert [module.training for module in model.modules()] == [True, True, False, True, True, True]
    assert torch.is_grad_enabled()


def test_predictions_are_those_of_the_whole_data_set_at_once():
    run = Run(device="cpu")
    model, samples = run.model(net()), data()
    with torch.no_grad():
        expected = model.eval()(samples.tensors[0])
    model.train()
    predicted = run.predict(model, run.loader(samples, batch_size=4))
    assert torch.allclose(predicted, expected, atol=1e-6)
    assert predicted.shape == (10, 4)
    assert not predicted.requires_grad
    assert model.training


def test_predictions_of_whole_batches_are_bit_equal():
    run = Run(device="cpu")
    model, samples = run.model(net()), data(8)
    loader = run.loader(samples, batch_size=4)
    with run.evaluate(model):
        expected = torch.cat([model(x) for x, _ in run.batches(loader)])
    assert run.predict(model, loader).equal(expected)
    assert torch.cat(run.predict(model, loader, join=False)).equal(expected)


def test_the_modes_are_put_back_when_a_model_fails():
    run, model = Run(device="cpu"), net()
    with pytest.raises(RuntimeError):
        run.predict(model, run.loader(TensorDataset(torch.ones(4, 7)), batch_size=2))
    assert model.training


@pytest.mark.parametrize("options", [{"shuffle": True}, {"drop_last": True}])
def test_a_loader_in_another_order_is_refused(options):
    run = Run(device="cpu")
    with pytest.raises(BadLoader, match=next(iter(options))):
        run.predict(net(), run.loader(data(), batch_size=4, **options))


def test_mappings_need_the_names_of_their_inputs():
    run = Run(device="cpu")
    loader = run.loader([{"x": torch.ones(3) * i} for i in range(5)], batch_size=2)
    with pytest.raises(BadLoader, match="forward=lambda"):
        run.predict(nn.Identity(), loader)
    assert run.predict(nn.Identity(), loader, lambda batch: batch["x"])[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_outputs_of_several_parts_are_joined_part_by_part():
    Scored = namedtuple("Scored", "scores best")
    run = Run(device="cpu")
    loader = run.loader(torch.arange(10.0).reshape(5, 2), batch_size=2)
    both = run.predict(nn.Identity(), loader, lambda x: Scored(x, {"best": x.argmax(1), "none": None}))
    assert type(both) is Scored
    assert both.scores.shape == (5, 2)
    assert both.best["best"].shape == (5,)
    assert both.best["none"] is None


@pytest.mark.parametrize("forward", [lambda x: x.sum(), lambda x: x[:, : len(x)], lambda x: "text"])
def test_outputs_that_do_not_join_are_refused(forward):
    run = Run(device="cpu")
    loader = run.loader(torch.arange(10.0).reshape(5, 2), batch_size=2)
    with pytest.raises(BadLoader, match="joined"):
        run.predict(nn.Identity(), loader, forward)
    assert len(run.predict(nn.Identity(), loader, forward, join=False)) == 3


def test_predictions_are_in_the_precision_of_the_run():
    run = Run(device="cpu", precision="bf16")
    assert run.predict(run.model(net()), run.loader(data(), batch_size=4)).dtype == torch.bfloat16


def test_a_mean_of_the_same_name_begins_again():
    run = Run(device="cpu")
    mean = run.mean("loss")
    mean.update(1.0, 1)
    assert run.mean("loss") is mean
    mean.update(3.0, 1)
    assert float(mean) == 3.0


def test_means_and_metrics_can_be_logged_and_saved_by(tmp_path):
    run = Run(device="cpu", out=tmp_path, log_every_n_steps=1)
    mean, accuracy = run.mean("loss"), run.register("accuracy", MulticlassAccuracy(4, average="micro"))
    mean.update(torch.tensor([1.0, 2.0]))
    accuracy.update(torch.tensor([1, 2]), torch.tensor([1, 3]))
    run.log({"loss": mean, "accuracy": accuracy})
    run.save(metric=mean)
    run.close()
    assert '"loss": 1.5, "accuracy": 0.5' in (tmp_path / "metrics.jsonl").read_text()


class Halt(Exception):
    pass


def trained(out, stop=None):
    """Train with a mean and metrics that are filled over the steps; stop in a body if asked to."""
    run = Run(out=out, device="cpu", max_epochs=3, resume="auto", save_every_n_steps=2, seed=5)
    train = run.loader(data(26), batch_size=4, shuffle=True)
    val = run.loader(data(10), batch_size=4)
    model = run.model(net())
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    metrics = run.register("metrics", MetricCollection([MulticlassAccuracy(4), MulticlassAUROC(4)]))
    size = run.register("size", MeanMetric())
    with run:
        for _ in run.epochs():
            losses = run.mean("loss")
            metrics.reset()
            for x, y in run.train(train, model):
                scores = model(x)
                loss = nn.functional.cross_entropy(scores, y)
                run.step(loss)
                losses.update(loss, len(x))
                metrics.update(scores.detach(), y)
                size.update(len(x))
                if run.global_step == stop:
                    raise Halt
            run.log({"loss": losses, "size": size, **metrics.compute()})
            with run.evaluate(model):
                val_loss = run.mean("val_loss")
                for x, y in run.batches(val):
                    val_loss.update(nn.functional.cross_entropy(model(x), y), len(x))
            run.log({"val_loss": val_loss})
    return (out / "metrics.jsonl").read_text()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stop", [5, 10, 17])
def test_means_and_metrics_go_on_in_a_resumed_run(tmp_path, stop):
    whole = trained(tmp_path / "whole")
    with pytest.raises(Halt):
        trained(tmp_path / "cut", stop)
    assert trained(tmp_path / "cut") == whole


def test_a_loop_with_an_evaluation_is_clean(tmp_path):
    with assert_clean():
        trained(tmp_path / "run")


def test_a_metric_is_registered_once():
    run, metric = Run(device="cpu"), MeanMetric()
    run.register("size", metric)
    with pytest.raises(BadPart, match="already"):
        run.register("size", MeanMetric())
