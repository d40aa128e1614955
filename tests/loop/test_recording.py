"""Records of a run without calls of the program, its alerts, and that it reads nothing in a step."""

import json
import math

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadLogValue, BadSettings
from truestep.testing import assert_clean


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def data(size=24):
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.TensorDataset(
        torch.randn(size, 4, generator=generator), torch.randn(size, 1, generator=generator)
    )


def begun(out=None, **settings):
    run = Run(**{"out": out, "seed": 1, "device": "cpu", "max_epochs": 2} | settings)
    model = run.model(nn.Linear(4, 1))
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    return run, model, optimizer, run.loader(data(), batch_size=4, shuffle=True)


def trained(run, model, loader, spoil=lambda step, loss: loss):
    for _ in run.epochs():
        for x, y in run.train(loader, model):
            loss = spoil(run.global_step, nn.functional.mse_loss(model(x), y))
            run.step(loss)
            run.log({"loss": loss})


def test_lines_of_a_loop_say_rate_and_norm_of_their_step(tmp_path):
    run, model, optimizer, loader = begun(tmp_path, clip_norm=math.inf)
    run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
    norms = []
    with run:
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                loss = nn.functional.mse_loss(model(x), y)
                run.step(loss)
                norms.append(run.grad_norm.item())
                run.log({"loss": loss})
            run.log({"val_loss": 1.0})
    logged = lines(tmp_path / "metrics.jsonl")
    of_loop = [line for line in logged if "loss" in line]
    assert [line["lr"] for line in of_loop] == [0.1 * 0.5**step for step in range(12)], "not the next step's"
    assert [line["grad_norm"] for line in of_loop] == norms
    assert logged[6] == {"step": 6, "epoch": 0, "val_loss": 1.0}


def test_what_the_user_logs_under_these_names_stays(tmp_path):
    run, model, _, loader = begun(tmp_path, clip_norm=1.0)
    with run:
        for x, y in run.train(loader, model):
            run.step(nn.functional.mse_loss(model(x), y))
            run.log({"lr": 7.0, "grad_norm": "mine"})
    assert {(line["lr"], line["grad_norm"]) for line in lines(tmp_path / "metrics.jsonl")} == {(7.0, "mine")}


def test_several_optimizers_are_distinguished(tmp_path):
    run, model, _, loader = begun(tmp_path, clip_norm=1.0)
    other = run.model(nn.Linear(4, 1))
    second = run.optimizer(torch.optim.SGD(other.parameters(), lr=0.5), name="critic")
    with run:
        for x, y in run.train(loader, model):
            run.step(nn.functional.mse_loss(model(x), y), optimizer=run._parts.updates["optimizer"].optimizer)
            run.step(nn.functional.mse_loss(other(x), y), optimizer=second)
            run.log({"a": 1})
    names = {"step", "epoch", "a", "lr/optimizer", "lr/critic", "grad_norm/optimizer", "grad_norm/critic"}
    assert set(lines(tmp_path / "metrics.jsonl")[0]) == names


def test_measuring_the_norm_without_clipping_changes_no_bit():
    weights = []
    for clip_norm in (None, math.inf):
        run, model, _, loader = begun(clip_norm=clip_norm)
        with run:
            trained(run, model, loader)
        weights.append(model.weight.detach().clone())
    assert torch.equal(*weights)


def test_a_step_reads_no_tensor(tmp_path, monkeypatch):
    run, model, _, loader = begun(tmp_path, clip_norm=1.0, max_epochs=8, log_every_n_steps=20)
    reads = []
    for name in ("item", "tolist", "__float__", "__bool__"):
        whole = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor,
            name,
            lambda self, *more, whole=whole: reads.append((run.global_step, self.dtype)) or whole(self, *more),
        )
    with run:
        trained(run, model, loader)
    monkeypatch.undo()
    ours = [step for step, dtype in reads if dtype == torch.float32]
    assert len(ours) <= 14, "one copy for 20 lines, and one at the end of each epoch"


def test_a_loss_that_is_nan_is_reported_once(tmp_path, capsys):
    run, model, _, loader = begun(tmp_path)
    with run:
        trained(run, model, loader, lambda step, loss: loss * math.nan if step >= 3 else loss)
    (alert,) = run.alerts
    assert (alert.step, alert.epoch, alert.kind, alert.message) == (4, 0, "not-finite", "the loss is nan")
    assert math.isnan(alert.value)
    assert capsys.readouterr().err.count("truestep: alert at step 4: the loss is nan\n") == 1
    assert lines(tmp_path / "alerts.jsonl") == [
        {"step": 4, "epoch": 0, "name": "the loss", "kind": "not-finite", "message": "the loss is nan", "value": "nan"}
    ]


def test_a_run_that_logs_nothing_and_has_no_folder_tells_too(capsys):
    run, model, _, _ = begun(max_epochs=None, max_steps=3)
    with run:
        for step in run.steps(None, model):
            run.step(model(torch.ones(2, 4)).square().mean() * (math.inf if step == 1 else 1))
    assert [(alert.step, alert.kind) for alert in run.alerts] == [(2, "not-finite")]
    assert "alert at step 2: the loss is inf" in capsys.readouterr().err


def test_alerts_can_be_switched_off(capsys):
    run, model, _, loader = begun(alerts=False)
    run.alert("spoilt", above=1)
    with run:
        trained(run, model, loader, lambda step, loss: loss * math.nan)
        run.log({"spoilt": 2.0, "val_loss": math.nan})
    assert [alert.message for alert in run.alerts] == ["spoilt is 2, above 1"]


def test_infinite_norms_of_a_scaler_that_looks_for_its_scale_are_no_alert():
    run, model, _, loader = begun(precision="fp16", clip_norm=1.0)
    with run:
        trained(run, model, loader)
        run._parts.updates["optimizer"].scaler.update(3e38)
        for x, y in run.train(loader, model):
            run.step(nn.functional.mse_loss(model(x), y))
    assert run.skipped_steps > 0
    assert run.alerts == []


def test_a_validation_loss_that_rises_five_times_is_reported():
    run, *_ = begun(max_epochs=8)
    with run:
        for epoch in run.epochs():
            run.log({"val_loss": 0.5 + 0.1 * abs(epoch - 1), "train_loss": epoch * 1.0, "oval_loss": epoch * 1.0})
    assert [(alert.epoch, alert.name, alert.kind) for alert in run.alerts] == [(6, "val_loss", "rising")]


@pytest.mark.parametrize("name", ["val_loss", "val/loss", "model/valid_loss", "validation loss", "eval/loss"])
def test_names_of_a_validation_loss(name):
    run, *_ = begun()
    with run:
        run.log({name: math.nan})
    assert len(run.alerts) == 1


def test_a_function_is_called_with_each_alert_and_may_end_the_training():
    run, model, _, loader = begun(log_every_n_steps=1, max_epochs=50)

    def stop(alert):
        run.log({"during the alert": 1.0})
        raise SystemExit(str(alert))

    run.on_alert(stop)
    with pytest.raises(SystemExit, match="alert at step 3: the loss is nan"):
        trained(run, model, loader, lambda step, loss: loss * math.nan if step >= 2 else loss)
    run.close()
    assert run.global_step < 6


def test_a_function_that_raises_at_the_end_lets_the_folder_go(tmp_path):
    def stop(alert):
        raise RuntimeError(str(alert))

    run, model, _, loader = begun(tmp_path)
    run.on_alert(stop)
    for x, y in run.train(loader, model):
        run.step(nn.functional.mse_loss(model(x), y) * math.nan)
    with pytest.raises(RuntimeError, match="the loss is nan"):
        run.close()
    Run(out=tmp_path, resume="auto", device="cpu").close()


def test_early_stopping_ends_a_loop():
    run, *_ = begun(max_epochs=50)
    with run:
        for epoch in run.epochs():
            run.log({"val_loss": torch.tensor(max(1.0, 3.0 - epoch))})
            if run.stalled("val_loss", patience=4):
                break
    assert epoch == 6


def test_asking_in_every_step_reads_only_what_is_new(monkeypatch):
    run, model, _, loader = begun()
    flushed = []
    whole = run._log.logs.flush
    monkeypatch.setattr(run._log.logs, "flush", lambda: flushed.append(run.global_step) or whole())
    with run:
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step(nn.functional.mse_loss(model(x), y))
                run.log({"loss": 1.0})
                if run.global_step % 5 == 0:
                    run.log({"val_loss": 1.0})
                run.stalled("val_loss", patience=9)
    assert [step for step in flushed if step % 6] == [5, 10]


@pytest.mark.parametrize("options", [{"rising": 0}, {"falling": 2.5}, {"rising": True}])
def test_an_alert_that_means_nothing_is_refused(options):
    with pytest.raises(BadSettings, match=r"must be a positive integer \(times in a row\)"):
        begun()[0].alert("x", **options)


def test_a_line_that_cannot_be_logged_is_refused_in_a_loop_too():
    run, model, _, loader = begun()
    with pytest.raises(BadLogValue):
        for _ in run.train(loader, model):
            run.log({"x": torch.ones(3)})
    run.close()


def test_a_recorded_loop_is_clean(tmp_path):
    with assert_clean():
        run, model, _, loader = begun(tmp_path, clip_norm=1.0, max_epochs=4)
        run.alert("loss", spike=True, rising=20)
        with run:
            for epoch in run.epochs():
                for x, y in run.train(loader, model):
                    loss = nn.functional.mse_loss(model(x), y)
                    run.step(loss)
                    run.log({"loss": loss})
                run.log({"val_loss": 1.0 / (epoch + 1)})
                run.stalled("val_loss", patience=2)
    assert run.alerts == []
