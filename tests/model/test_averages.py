"""Averages are those of torch, bit for bit, and take each applied update once."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn
from torch.optim.swa_utils import update_bn as update_bn_of_torch

from truestep import EMA, SWA, Run, freeze, load_weights
from truestep.errors import BadPart, BadSettings
from truestep.testing import assert_clean


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 2))


def batches(count=6, size=8):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 3, generator=generator) for _ in range(count)]


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def trained(model, after, data=None):
    """A loop by hand; `after` is called after each step."""
    torch.manual_seed(2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for x in data or batches():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        after()
    return model


def test_an_ema_is_that_of_torch_that_begins_with_the_model():
    model, twin = net(), net()
    ema = EMA(model, decay=0.9)
    theirs = AveragedModel(twin, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(twin)  # torch takes the weights of the first call as they are
    trained(model, ema.update)
    trained(twin, lambda: theirs.update_parameters(twin))
    for (name, a), (_, b) in zip(ema.model.named_parameters(), theirs.module.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    assert not same(ema.model, model)


def test_an_ema_averages_the_statistics_of_batchnorm_and_copies_other_buffers():
    model = net()
    ema = EMA(model, decay=0.9)
    mean = model[1].running_mean.clone()
    for x in batches():
        model(x)
        ema.update()
        mean.lerp_(model[1].running_mean, 1 - 0.9)
    assert torch.equal(ema.model[1].running_mean, mean)
    assert ema.model[1].num_batches_tracked == 6


def test_an_ema_with_warm_up_follows_the_formula():
    model = net()
    ema = EMA(model, decay=0.5, warmup=True)
    weight = model[0].weight.detach().clone()
    decays = iter(min(0.5, (1 + n) / (10 + n)) for n in range(20))

    def after():
        ema.update()
        weight.lerp_(model[0].weight.detach(), 1 - next(decays))

    trained(model, after, batches(20))
    assert torch.equal(ema.model[0].weight, weight)


def test_a_swa_is_that_of_torch_with_its_statistics_computed_again():
    model, twin = net(), net()
    swa, theirs = SWA(model), AveragedModel(twin, multi_avg_fn=get_swa_multi_avg_fn())
    trained(model, swa.update)
    trained(twin, lambda: theirs.update_parameters(twin))
    for average in (swa.model, theirs.module):
        average[3].p = 0.0
    swa.update_bn(batches())
    update_bn_of_torch(batches(), theirs)
    assert same(swa.model, theirs.module)
    assert not any(module.training for module in swa.model.modules())
    assert swa.model[1].momentum == 0.1


def test_statistics_are_put_back_in_order_also_after_an_error_and_frozen_ones_stay():
    model = net()
    freeze(model, "1")
    swa = SWA(model)
    swa.update_bn(iter([None]))  # nothing is read where there is nothing to compute
    model = net()
    swa = SWA(model)
    with pytest.raises(TypeError):
        swa.update_bn([None])
    assert swa.model[1].momentum == 0.1
    assert not swa.model[1].training


def test_masks_of_minus_infinity_stay_what_they_are():
    model = nn.Linear(2, 2)
    model.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1), persistent=False)
    model.register_buffer("cache", None)
    ema = EMA(model, decay=0.9)
    model.cache = torch.ones(3)
    ema.update()
    assert torch.equal(ema.model.mask, model.mask)
    assert torch.equal(ema.model.cache, model.cache)
    assert ema.model.cache is not model.cache
    model.cache = torch.zeros(5)
    ema.update()
    assert ema.model.cache.shape == (5,)


def test_tied_weights_stay_tied_and_are_averaged_once():
    model = nn.Module()
    model.embed, model.head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
    model.head.weight = model.embed.weight
    ema = EMA(model, decay=0.5)
    nn.init.zeros_(model.embed.weight)
    before = ema.model.embed.weight.clone()
    ema.update()
    assert ema.model.head.weight is ema.model.embed.weight
    assert torch.equal(ema.model.embed.weight, before / 2)


def test_the_average_has_no_gradients_and_no_part_of_the_model():
    model = net()
    model(torch.ones(2, 3)).sum().backward()
    ema = EMA(model)
    assert all(p.grad is None and not p.requires_grad for p in ema.model.parameters())
    own = {p.data_ptr() for p in model.parameters()}
    assert own.isdisjoint(p.data_ptr() for p in ema.model.parameters())
    assert not ema.model.training
    assert model.training


def test_a_state_of_an_average_goes_into_a_new_one_and_its_weights_into_a_model(tmp_path):
    model = net()
    ema = EMA(model, decay=0.9, warmup=True)
    trained(model, ema.update)
    torch.save(ema.state_dict(), tmp_path / "ema.pt")
    other = EMA(net(5), decay=0.9, warmup=True)
    other.load_state_dict(torch.load(tmp_path / "ema.pt", weights_only=True))
    assert same(other.model, ema.model)
    assert other.updates == 6
    assert load_weights(fresh := net(9), tmp_path / "ema.pt").complete
    assert same(fresh, ema.model)


def test_a_model_that_changed_is_noticed():
    model = net()
    ema = EMA(model)
    model[4] = nn.Linear(5, 2)
    with pytest.raises(BadPart, match="changed since its average was made"):
        ema.check()
    model = net()
    ema = EMA(model)
    model[4].weight = nn.Parameter(torch.ones(3, 5))
    with pytest.raises(BadPart, match=r"4\.weight"):
        ema.update()


@pytest.mark.parametrize("decay", [1.0, -0.1, True, float("nan"), "0.9", None])
def test_a_decay_out_of_its_range_is_refused(decay):
    with pytest.raises(BadSettings, match="decay must be a number in"):
        EMA(net(), decay=decay)


def test_weights_too_coarse_for_the_decay_are_refused():
    with pytest.raises(BadPart, match=r"(?s)bfloat16, which rounds away updates of 0\.001.*float32"):
        EMA(net().to(torch.bfloat16), decay=0.999)
    assert EMA(net().to(torch.bfloat16), decay=0.9).decay == 0.9
    assert EMA(net(), decay=0.99999).updates == 0


def test_models_that_cannot_be_copied_or_are_not_made_are_refused():
    model = nn.Linear(2, 2)
    model.last = model(torch.ones(1, 2))
    with pytest.raises(BadPart, match="Linear cannot be copied"):
        EMA(model)
    with pytest.raises(BadPart, match="no shape yet"):
        SWA(nn.LazyLinear(2))


def test_a_compiled_model_has_an_average_with_plain_keys():
    model = net()
    average = EMA(torch.compile(model, backend="eager"))
    assert average.source is model
    assert list(average.model.state_dict()) == list(model.state_dict())


# --- in a run ---


class Data(torch.utils.data.Dataset):
    """Ten batches of two."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.randn(3, generator=torch.Generator().manual_seed(index))


def loop(model, after_step=lambda: None, after_epoch=lambda: None, out=None, stop=None, parts=lambda run, model: None,
         **settings):  # fmt: skip
    run = Run(out=out, seed=4, device="cpu", max_epochs=3, resume="auto" if out else None, **settings)
    loader = run.loader(Data(), batch_size=2, shuffle=True)
    run.model(model)
    run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.05))
    kept = parts(run, model)
    taken = 0
    with run:
        for _ in run.epochs():
            for x in run.train(loader, model):
                with run.autocast():
                    loss = model(x).square().mean()
                applied = run.skipped_steps
                if run.step(loss) and run.skipped_steps == applied:
                    after_step()
                taken += 1
                if taken == stop:
                    raise KeyboardInterrupt
            after_epoch()
            if out:
                run.save()
    return kept


@pytest.mark.parametrize("settings", [{}, {"accumulate": 3}, {"precision": "fp16"}], ids=["plain", "window", "fp16"])
def test_the_average_of_a_run_is_that_of_a_loop_that_updates_it_by_hand(settings):
    by_hand, ours = net(), net()
    twin = EMA(by_hand, decay=0.9)
    loop(by_hand, after_step=twin.update, **settings)
    ema = loop(ours, parts=lambda run, model: run.ema(model, 0.9), **settings)
    assert same(by_hand, ours)
    assert same(ema.model, twin.model)
    assert ema.updates == twin.updates > 0


def test_a_swa_of_a_run_takes_in_the_epochs_from_its_start_on():
    by_hand, ours = net(), net()
    twin, ends = SWA(by_hand), []

    def after_epoch():
        ends.append(copy.deepcopy(by_hand.state_dict()))
        if len(ends) > 1:
            twin.update()

    loop(by_hand, after_epoch=after_epoch)
    swa = loop(ours, parts=lambda run, model: run.swa(model, start=1))
    assert swa.updates == 2
    assert same(swa.model, twin.model)
    assert not torch.equal(swa.model[0].weight, ends[-1]["0.weight"])


def test_until_it_starts_a_swa_has_the_weights_of_the_last_mark():
    model = net()
    swa = loop(model, parts=lambda run, model: run.swa(model, start=100, every="step"))
    assert swa.updates == 0
    assert same(swa.model, model)


@pytest.mark.program
@pytest.mark.parametrize(
    ("parts", "settings", "stop"),
    [
        (lambda run, model: run.ema(model, 0.9, warmup=True), {"save_every_n_steps": 2}, 5),
        (lambda run, model: run.ema(model, 0.9), {"save_every_n_steps": 1, "accumulate": 3, "asynchronous": True}, 14),
        (lambda run, model: run.swa(model, 1), {"save_every_n_steps": 2}, 29),
        (lambda run, model: run.swa(model, 7, every="step"), {"save_every_n_steps": 2, "precision": "fp16"}, 14),
    ],
    ids=["ema", "ema-window", "swa", "swa-steps"],
)
def test_the_average_of_a_resumed_run_is_that_of_the_uninterrupted_one(parts, settings, stop, tmp_path):
    whole = loop(net(), out=tmp_path / "whole", parts=parts, **settings)
    with pytest.raises(KeyboardInterrupt):
        loop(net(), out=tmp_path / "run", parts=parts, stop=stop, **settings)
    resumed = loop(net(7), out=tmp_path / "run", parts=parts, **settings)
    assert same(whole.model, resumed.model)
    assert same(whole.source, resumed.source)
    assert whole.updates == resumed.updates > 0


def test_a_checkpoint_holds_model_and_average_each_under_its_name_with_plain_keys(tmp_path):
    ema = loop(net(), out=tmp_path, parts=lambda run, model: run.ema(model, 0.9))
    for name, kept in (("model", ema.source), ("ema", ema.model)):
        assert load_weights(fresh := net(3), tmp_path, name=name).complete
        assert same(fresh, kept)


def test_an_evaluation_of_the_average_leaves_the_model_to_be_saved(tmp_path):
    run = Run(out=tmp_path, device="cpu", max_steps=2)
    model = run.model(net())
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.5))
    ema = run.ema(model, 0.5)
    with run:
        for _ in run.steps(2, model):
            run.step(model(torch.ones(2, 3)).square().mean())
            with run.evaluate(ema.model):
                run.save(metric=ema.model(torch.ones(2, 3)).square().mean())
    load_weights(saved := net(3), tmp_path, name="model")
    assert same(saved, model)
    assert not same(saved, ema.model)
    assert model.training


def test_several_optimizers_of_one_model_are_one_update_of_its_average():
    run = Run(device="cpu", max_steps=4)
    model, other = run.model(net()), run.model(nn.Linear(3, 1))
    run.optimizer(torch.optim.SGD(model[0].parameters(), lr=0.1), name="one")
    run.optimizer(torch.optim.SGD(model[4].parameters(), lr=0.1), name="two")
    run.optimizer(torch.optim.SGD(other.parameters(), lr=0.1), name="three")
    one, two, three = (updates.optimizer for updates in run._parts.updates.values())
    ema = run.ema(model, 0.5)
    twin = EMA(model, 0.5)
    for step in run.steps(4, model):
        x = torch.ones(2, 3)
        run.step(other(x).sum(), optimizer=three)
        run.step(model(x).square().mean(), optimizer=one)
        if step % 2:
            run.step(model(x).square().mean(), optimizer=two)
        twin.update()
    assert ema.updates == 4
    assert all(torch.equal(a, b) for a, b in zip(ema.model.parameters(), twin.model.parameters(), strict=True))


def test_an_update_called_by_hand_counts_too():
    run = Run(device="cpu", max_steps=3)
    model = run.model(net())
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    ema = run.ema(model, 0.5)
    for _ in run.steps(3, model):
        run.backward(model(torch.ones(2, 3)).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    assert ema.updates == 3


def test_averages_have_names_of_their_own():
    run = Run(device="cpu")
    model = run.model(net())
    run.ema(model)
    run.ema(model, 0.9)
    run.swa(model, 1)
    run.ema(model, 0.99, name="slow")
    assert list(run._parts.averaging.shelf) == ["ema", "ema_2", "swa", "slow"]
    with pytest.raises(BadPart, match='called "slow" already'):
        run.ema(model, name="slow")
    with pytest.raises(BadPart, match='called "model" already'):
        run.ema(model, name="model")
    with pytest.raises(BadPart, match='called "ema" already'):
        run.model(nn.Linear(1, 1), name="ema")


def test_what_cannot_be_averaged_in_a_run_is_refused():
    run = Run(device="cpu", max_epochs=3)
    with pytest.raises(BadPart, match=r"(?s)a model on meta.*run\.model\(model\) before run\.ema\(model\)"):
        run.ema(nn.Linear(1, 1, device="meta"))
    with pytest.raises(BadPart, match="without parameters"):
        run.swa(nn.ReLU(), 1)
    model = run.model(net())
    for start in (3, -1, 1.5, True):
        with pytest.raises(BadSettings, match="start is"):
            run.swa(model, start)
    with pytest.raises(BadSettings, match='every must be "epoch" or "step", got "batch"'):
        run.swa(model, 1, every="batch")


def test_a_run_resumed_without_its_average_is_refused(tmp_path):
    from truestep.errors import BadCheckpoint

    settings = {"save_every_n_steps": 2}
    with pytest.raises(KeyboardInterrupt):
        loop(net(), out=tmp_path, parts=lambda run, model: run.ema(model), stop=4, **settings)
    with pytest.raises(BadCheckpoint, match=r"models \['ema', 'model'\], got \['model'\]"):
        loop(net(), out=tmp_path, **settings)


@pytest.mark.program
def test_a_loop_with_averages_is_clean():
    with assert_clean():
        run = Run(seed=4, device="cpu", max_epochs=3)
        loader = run.loader(Data(), batch_size=5, shuffle=True)
        model = run.model(net())
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
        ema, swa = run.ema(model, 0.9), run.swa(model, 1)
        for _ in run.epochs():
            for x in run.train(loader, model):
                run.step(nn.functional.mse_loss(model(x), x[:, :2]))
            with run.evaluate(ema.model):
                for x in run.batches(loader):
                    ema.model(x)
        swa.update_bn(run.batches(loader))
        with run.evaluate(swa.model):
            for x in run.batches(loader):
                swa.model(x)


def test_the_effective_batch_size_of_a_run_counts_its_window():
    run = Run(device="cpu", accumulate=3)
    assert run.effective_batch_size(run.loader(Data(), batch_size=2)) == 6
