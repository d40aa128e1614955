"""Frozen parameters neither move nor count, and unfrozen ones do again."""

import copy

import pytest
import torch
from torch import nn

from truestep import Run, freeze, unfreeze
from truestep.errors import BadPart
from truestep.testing import assert_clean


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2), nn.BatchNorm1d(2, affine=False)
    )


def test_frozen_parameters_and_statistics_stay_under_train_mode():
    model = net()
    assert freeze(model, "0", "1.*") == ["0.weight", "0.bias", "1.weight", "1.bias"]
    before = copy.deepcopy(model.state_dict())
    run = Run(device="cpu", max_steps=4)
    run.model(model)
    run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.1))
    model.eval()
    for _ in run.steps(4, model):
        run.step(model(torch.randn(8, 3)).square().mean())
    assert model.training
    after = model.state_dict()
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert moved == {"3.weight", "3.bias", "4.running_mean", "4.running_var", "4.num_batches_tracked"}


def test_a_frozen_loop_is_the_one_written_by_hand():
    ours, twin = net(), net()
    freeze(ours, "0", "1")
    for module in (twin[0], twin[1]):
        module.requires_grad_(False)
    for model in (ours, twin):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            model.train()
            if model is twin:
                twin[1].eval()
            optimizer.zero_grad()
            model(torch.randn(8, 3)).square().mean().backward()
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(ours.state_dict().values(), twin.state_dict().values(), strict=True))


def test_gradients_from_before_do_not_move_what_is_frozen():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    freeze(model, "weight")
    before = model.weight.clone()
    optimizer.step()
    assert torch.equal(model.weight, before)


def test_a_norm_layer_of_which_a_part_is_trained_goes_on_counting():
    model = net()
    freeze(model, "1.bias")
    assert model.train()[1].training


def test_a_norm_layer_without_parameters_is_frozen_by_its_name():
    model = net()
    assert freeze(model, "4") == []
    assert not model.train()[4].training


def test_what_is_thawed_has_the_mode_of_the_model():
    model = net()
    freeze(model)
    assert not any(p.requires_grad for p in model.parameters())
    unfreeze(model, "1")
    assert model[1].training
    assert not model.eval()[1].training
    assert model.train()[1].training
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["1.weight", "1.bias"]
    assert "train" not in vars(model[1])


def test_evaluation_puts_a_frozen_norm_layer_back_into_eval_mode():
    model = net()
    freeze(model, "1")
    with Run(device="cpu").evaluate(model):
        pass
    assert model.training
    assert not model[1].training


def test_a_copy_of_a_frozen_model_is_frozen_by_itself():
    model = net()
    freeze(model, "1")
    other = copy.deepcopy(model)
    unfreeze(model, "1")
    assert model.train()[1].training
    assert not other.train()[1].training


def test_a_pattern_that_fits_nothing_freezes_nothing():
    model = net()
    with pytest.raises(BadPart, match='matches "encoder"'):
        freeze(model, "0", "encoder")
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(BadPart, match="a pattern must be a str"):
        freeze(model, model[0])


@pytest.mark.program
def test_a_loop_with_a_frozen_part_is_clean():
    with assert_clean():
        model = net()
        freeze(model, "0", "1")
        run = Run(device="cpu", max_steps=6)
        run.model(model)
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
        for step in run.steps(6, model):
            if step == 3:
                unfreeze(model, "1")
            run.step(nn.functional.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 2)))


def gradual(out, stop=None):
    """Train the head, and from the second epoch on everything."""
    run = Run(out=out, seed=5, device="cpu", max_epochs=4, resume="auto")
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(8, 3) / 10, torch.ones(8, 2))
    loader = run.loader(data, batch_size=4, shuffle=True)
    model = run.model(net())
    run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
    freeze(model, "0", "1")
    with run:
        for epoch in run.epochs():
            if epoch == 1:
                unfreeze(model)
            for x, y in run.train(loader, model):
                run.step(nn.functional.mse_loss(model(x), y))
            if stop == epoch:
                break
            run.save()
    return model


def test_what_an_epoch_unfroze_is_unfrozen_in_the_resumed_run(tmp_path):
    whole = gradual(tmp_path / "whole")
    gradual(tmp_path / "stopped", stop=3)
    resumed = gradual(tmp_path / "stopped")
    assert all(p.requires_grad for p in resumed.parameters())
    assert resumed[1].training
    for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b)
