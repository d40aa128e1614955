"""One loss, several optimizers: against loops in plain PyTorch, bit for bit."""

import warnings

import pytest
import torch
from torch import nn

from truestep.errors import BadPart, BadSettings, OpenWindow, OptimizerNotStepped
from truestep.loop.run.run import Run

pytestmark = pytest.mark.filterwarnings("error")

DATA = torch.randn(40, 6, generator=torch.Generator().manual_seed(1)).split(4)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def loss_of(model, x):
    return (model(x) - x.sum(1, keepdim=True)).pow(2).mean()


def optimizers(model):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim != 2]
    first = getattr(torch.optim, "Muon", torch.optim.SGD)  # before torch 2.9 there is none
    return first(matrices, lr=0.02), torch.optim.AdamW(rest, lr=1e-2)


def made(*, clips=(None, None), **settings):
    run = Run(**{"device": "cpu", "watch": False, "max_epochs": 1, **settings})
    model = run.model(net())
    return run, model, [run.optimizer(o, clip_norm=c) for o, c in zip(optimizers(model), clips, strict=True)]


def walk(run, data=DATA):
    yield from run.train(run.loader(data, batch_size=1, collate_fn=lambda samples: samples[0]))


def equal(a, b):
    return all(map(torch.equal, a.parameters(), b.parameters()))


@pytest.mark.parametrize("accumulate", [1, 2, 4])
@pytest.mark.parametrize("clip", ["none", "global", "alone"])
def test_one_loss_updates_several_optimizers_as_by_hand(accumulate, clip):
    settings = {"global": {"clip_norm": 0.5}, "alone": {"clips": (0.3, None), "clip_norm": 0.2}}.get(clip, {})
    run, model, both = made(accumulate=accumulate, **settings)
    for x in walk(run):
        run.step(loss_of(model, x), optimizer=both)

    twin = net()
    theirs = optimizers(twin)
    for start in range(0, len(DATA), accumulate):
        window = DATA[start : start + accumulate]
        for x in window:
            (loss_of(twin, x) / accumulate).backward()
        if len(window) != accumulate:  # the last one
            for parameter in twin.parameters():
                parameter.grad.mul_(accumulate / len(window))
        if clip == "global":
            nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        elif clip == "alone":
            for optimizer, limit in zip(theirs, (0.3, 0.2), strict=True):
                nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], limit)
        for optimizer in theirs:
            optimizer.step()
            optimizer.zero_grad()
    assert equal(model, twin)
    assert run.global_step == -(-len(DATA) // accumulate)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_one_scale_serves_all_of_them(accumulate):
    data = [x * 1e30 if index == 4 else x for index, x in enumerate(DATA)]
    run, model, both = made(accumulate=accumulate, precision="fp16", clip_norm=0.5)
    for x in walk(run, data):
        with run.autocast():
            loss = loss_of(model, x)
        run.step(loss, optimizer=both)

    twin = net()
    theirs, scaler, stepped = optimizers(twin), torch.amp.GradScaler("cpu"), []
    for optimizer in theirs:
        optimizer.register_step_post_hook(lambda *_: stepped.append(1))
    for index, x in enumerate(data):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = loss_of(twin, x)
        scaler.scale(loss / accumulate).backward()
        if index % accumulate == accumulate - 1:
            for optimizer in theirs:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
            for optimizer in theirs:
                scaler.step(optimizer)
            scaler.update()
            for optimizer in theirs:
                optimizer.zero_grad()
    assert equal(model, twin)
    assert run.skipped_steps == 2 * run.global_step - len(stepped) > 0, "an optimizer without overflow steps"


@pytest.mark.parametrize("shape", ["together", "one by one", "optimizer.step()"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_lines_of_the_step_take_several_optimizers(shape, precision):
    if shape == "optimizer.step()" and precision == "fp16":
        pytest.skip("refused: gradients carry the scale")
    whole, model, both = made(accumulate=2, clip_norm=0.5, precision=precision)
    for x in walk(whole):
        whole.step(loss_of(model, x), optimizer=both)
    lines, twin, (a, b) = made(accumulate=2, precision=precision)
    for index, x in enumerate(walk(lines)):
        lines.backward(loss_of(twin, x), optimizer=[a, b])
        if index % 2 == 0:
            continue
        lines.clip_grad_norm_(0.5, optimizer=[a, b])
        if shape == "together":
            assert lines.optimizer_step([a, b])
            lines.zero_grad([a, b])
        elif shape == "one by one":
            lines.optimizer_step(a)
            lines.zero_grad(a)
            lines.optimizer_step(b)
            lines.zero_grad(b)
        else:
            for optimizer in (a, b):
                optimizer.step()
                optimizer.zero_grad()
    assert equal(model, twin)
    assert whole.global_step == lines.global_step == 5


def test_a_loss_of_one_of_them_has_a_window_of_its_own():
    run, model, (a, b) = made(accumulate=2)
    x = DATA[0]
    run.backward(loss_of(model, x), optimizer=[a, b])
    with pytest.raises(OpenWindow, match='open for losses of "optimizer" and "optimizer_2"'):
        run.step(loss_of(model, x), optimizer=b)
    run.discard()
    assert all(parameter.grad is None for parameter in model.parameters())
    run.backward(loss_of(model, x), optimizer=[a, b])
    run.flush()
    assert run.global_step == 1
    run.step(loss_of(model, x), optimizer=b)
    run.zero_grad(b)


def test_what_one_loss_cannot_update_together_is_refused():
    run = Run(device="cpu", watch=False)
    model = run.model(net())
    a, b = optimizers(model)
    run.optimizer(a), run.optimizer(b, accumulate=2)
    loss = loss_of(model, DATA[0])
    for wrong, words in (([a, b], "different lengths"), ([a, a], "1 of them different"), ([], "0 optimizers")):
        with pytest.raises(BadPart, match=words):
            run.step(loss, optimizer=wrong)
    run, model, both = made()
    with pytest.raises(BadSettings, match="several optimizers"):
        run.step(lambda: loss_of(model, DATA[0]), optimizer=both)


def test_an_average_takes_the_weights_in_once_for_all_of_them():
    run, model, both = made(accumulate=2)
    ema = run.ema(model, 0.5)
    for x in walk(run):
        run.step(loss_of(model, x), optimizer=both)
    assert ema.updates == 5


def test_a_second_step_of_one_loss_names_the_list():
    run, model, (a, b) = made()
    loss = loss_of(model, DATA[0])
    run.step(loss, optimizer=a)
    with pytest.raises(RuntimeError) as caught:
        run.step(loss, optimizer=b)
    assert "optimizer=[...]" in caught.value.__notes__[0]


def test_an_optimizer_that_is_stepped_without_gradients_is_a_warning():
    run, model, (a, b) = made(accumulate=2)
    for _ in range(2):
        run.backward(loss_of(model, DATA[0]), optimizer=a)
    run.optimizer_step(a)
    with pytest.warns(OptimizerNotStepped, match=r"optimizer_2.*without a gradient of any parameter"):
        run.optimizer_step(b)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_optimizer_that_no_loss_updates_is_a_warning_after_the_first_epoch(accumulate):
    run, model, (a, _) = made(accumulate=accumulate)
    with pytest.warns(OptimizerNotStepped, match='losses of "optimizer" reach its parameters') as caught:
        for _ in run.epochs():
            for x in walk_in_epoch(run):
                run.step(loss_of(model, x), optimizer=a)
    assert len(caught) == 1


def walk_in_epoch(run):
    yield from run.train(run.loader(DATA, batch_size=1, collate_fn=lambda samples: samples[0], name="train"))


def test_a_discriminator_that_reaches_an_idle_generator_is_quiet():
    run = Run(device="cpu", watch=False, max_epochs=1)
    generator, critic = nn.Linear(6, 6), nn.Linear(6, 1)
    run.model(generator), run.model(critic)
    opt_g, opt_d = (run.optimizer(torch.optim.SGD(m.parameters(), lr=0.1)) for m in (generator, critic))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in run.epochs():
            for index, x in enumerate(walk_in_epoch(run)):
                run.step(critic(generator(x)).mean() - critic(x).mean(), optimizer=opt_d)
                if index % 5 == 4:
                    run.step(-critic(generator(x)).mean(), optimizer=opt_g)
    run = Run(device="cpu", watch=False, max_epochs=1)
    run.model(generator), run.model(critic)
    opt_g, opt_d = (run.optimizer(torch.optim.SGD(m.parameters(), lr=0.1)) for m in (generator, critic))
    for _ in run.epochs():
        for x in walk_in_epoch(run):  # the generator is not reached, and may wait for a later epoch
            run.step(critic(generator(x).detach()).mean() - critic(x).mean(), optimizer=opt_d)
