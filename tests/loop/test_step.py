"""`run.step` against the same loops written by hand, bit for bit."""

import copy

import pytest
import torch
from torch import nn

from truestep.errors import BadPart, BadSettings, OpenWindow, ScaledGradients
from truestep.loop.run.run import Run

pytestmark = pytest.mark.filterwarnings("error")


def net(seed=0, *, sizes=(6, 8, 3)):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.Tanh(), nn.Linear(sizes[1], sizes[2]))


def batches(count, *, size=4, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(size, 6, generator=generator), torch.randint(0, 3, (size,), generator=generator))
        for _ in range(count)
    ]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def walk(run, data, *models):
    """The batches under a loop of the run."""
    yield from run.train(run.loader(data, batch_size=1, collate_fn=lambda samples: samples[0]), *models)


@pytest.fixture
def pair():
    ours = net()
    return ours, copy.deepcopy(ours)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("clip_norm", [None, 0.5])
def test_a_step_is_the_loop_by_hand(pair, kind, clip_norm):
    ours, twin = pair
    data = batches(12)
    run = Run(clip_norm=clip_norm, max_epochs=1, precision="fp32", device="cpu")
    optimizer = run.optimizer(OPTIMIZERS[kind](run.model(ours).parameters()))
    for x, y in walk(run, data):
        assert run.step(nn.functional.cross_entropy(ours(x), y))
    by_hand = OPTIMIZERS[kind](twin.parameters())
    for x, y in data:
        by_hand.zero_grad()
        nn.functional.cross_entropy(twin(x), y).backward()
        if clip_norm:
            nn.utils.clip_grad_norm_(twin.parameters(), clip_norm)
        by_hand.step()
    assert equal(ours, twin)
    assert run.global_step == 12
    assert all(p.grad is None for group in optimizer.param_groups for p in group["params"])


def test_full_windows_are_the_loop_that_divides_every_loss(pair):
    ours, twin = pair
    data = batches(12)
    run = Run(accumulate=4, clip_norm=0.1, device="cpu", max_epochs=1)
    run.optimizer(OPTIMIZERS["sgd"](run.model(ours).parameters()))
    closed = [run.step(nn.functional.cross_entropy(ours(x), y)) for x, y in walk(run, data)]
    by_hand = OPTIMIZERS["sgd"](twin.parameters())
    for index, (x, y) in enumerate(data):
        (nn.functional.cross_entropy(twin(x), y) / 4).backward()
        if index % 4 == 3:
            nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
            by_hand.step()
            by_hand.zero_grad()
    assert equal(ours, twin)
    assert closed == [False, False, False, True] * 3
    assert run.global_step == 3


def test_the_partial_window_of_the_peers_is_right():
    """Ten micro-batches, windows of four, SGD with lr 1, every gradient 1: 3.0 (others 2.5 and 2.0)."""
    weight = nn.Parameter(torch.zeros(()))
    model = nn.Module()
    model.weight = weight
    run = Run(accumulate=4, device="cpu", max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(model).parameters(), lr=1.0))
    for _ in walk(run, range(10)):
        run.step(-weight)
    assert weight.item() == 3.0
    assert run.global_step == 3


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (4, 2, 3, 1), (1, 9)])
def test_weighted_windows_are_the_one_big_batch(pair, sizes):
    ours, twin = pair
    data = [batches(1, size=size, seed=index)[0] for index, size in enumerate(sizes)]
    run = Run(accumulate=len(sizes), device="cpu", max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(ours).parameters(), lr=1.0))
    for x, y in walk(run, data):
        run.step(nn.functional.cross_entropy(ours(x), y, reduction="sum"), weight=len(y))
    by_hand = torch.optim.SGD(twin.parameters(), lr=1.0)
    x, y = (torch.cat(parts) for parts in zip(*data, strict=True))
    nn.functional.cross_entropy(twin(x), y).backward()
    by_hand.step()
    for a, b in zip(ours.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert run.global_step == 1


def test_masked_tokens_weigh_nothing(pair):
    ours, twin = pair
    data = batches(3)
    data[0] = (data[0][0], torch.full_like(data[0][1], -100))
    run = Run(accumulate=3, device="cpu", max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(ours).parameters(), lr=1.0))
    for x, y in walk(run, data):
        run.step(nn.functional.cross_entropy(ours(x), y, reduction="sum"), weight=(y != -100).sum())
    x, y = (torch.cat(parts) for parts in zip(*data, strict=True))
    nn.functional.cross_entropy(twin(x), y).backward()
    torch.optim.SGD(twin.parameters(), lr=1.0).step()
    for a, b in zip(ours.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_skipped_batch_leaves_the_window_right(pair):
    ours, twin = pair
    data = batches(9)
    run = Run(accumulate=2, device="cpu", max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(ours).parameters(), lr=0.5))
    for index, (x, y) in enumerate(walk(run, data)):
        if index in (1, 4, 8):  # the last one, too: its window holds one
            continue
        run.step(nn.functional.cross_entropy(ours(x), y))
    by_hand = torch.optim.SGD(twin.parameters(), lr=0.5)
    for window in ([0, 2], [3, 5], [6, 7]):
        for index in window:
            (nn.functional.cross_entropy(twin(data[index][0]), data[index][1]) / 2).backward()
        by_hand.step()
        by_hand.zero_grad()
    assert equal(ours, twin)
    assert run.global_step == 3


def test_the_last_window_closes_where_the_loop_skipped_its_last_batch(pair):
    ours, twin = pair
    data = batches(4)
    run = Run(accumulate=4, device="cpu", max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(ours).parameters(), lr=0.5))
    for index, (x, y) in enumerate(walk(run, data)):
        if index == 3:
            continue
        run.step(nn.functional.cross_entropy(ours(x), y))
    for x, y in data[:3]:
        (nn.functional.cross_entropy(twin(x), y) / 4).backward()
    for p in twin.parameters():
        p.grad.mul_(4 / 3)
    torch.optim.SGD(twin.parameters(), lr=0.5).step()
    assert equal(ours, twin)
    assert run.global_step == 1


def test_the_lines_of_the_step_are_the_step(pair):
    ours, twin = pair
    data = batches(10)
    run = Run(accumulate=3, device="cpu", max_epochs=1, clip_norm=0.2)
    run.optimizer(OPTIMIZERS["adamw"](run.model(ours).parameters()))
    for x, y in walk(run, data):
        run.step(nn.functional.cross_entropy(ours(x), y))
    lines = Run(accumulate=3, device="cpu", max_epochs=1)
    optimizer = lines.optimizer(OPTIMIZERS["adamw"](lines.model(twin).parameters()))
    for index, (x, y) in enumerate(walk(lines, data)):
        lines.backward(nn.functional.cross_entropy(twin(x), y))
        if index % 3 == 2 or index == 9:
            lines.clip_grad_norm_(0.2)
            optimizer.step()
            optimizer.zero_grad()
    assert equal(ours, twin)
    assert run.global_step == lines.global_step == 4


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net(7, sizes=(6, 8, 1))

    def forward(self, x):
        return self.net(x).mean()


def gan(train, accumulate=1):
    """A GAN with a generator loss that leaves gradients in the critic, trained by `train(g, d, opt_g, opt_d, data)`."""
    generator, critic = net(3, sizes=(6, 8, 6)), Critic()
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-2)
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-2)
    train(generator, critic, opt_g, opt_d, batches(12))
    return generator, critic


@pytest.mark.parametrize("n_critic", [1, 5])
def test_a_gan_is_its_twin(n_critic):
    def ours(g, d, opt_g, opt_d, data):
        run = Run(device="cpu", max_epochs=1)
        run.model(g, name="generator"), run.model(d, name="critic")
        run.optimizer(opt_g, name="generator"), run.optimizer(opt_d, name="critic")
        for index, (x, _) in enumerate(walk(run, data)):
            run.step(d(g(x).detach()) - d(x), optimizer=opt_d)
            if index % n_critic == n_critic - 1:
                run.step(-d(g(x)), optimizer=opt_g)
        assert run.global_step == len(data)

    def by_hand(g, d, opt_g, opt_d, data):
        for index, (x, _) in enumerate(data):
            opt_d.zero_grad()
            (d(g(x).detach()) - d(x)).backward()
            opt_d.step()
            if index % n_critic == n_critic - 1:
                opt_g.zero_grad()
                (-d(g(x))).backward()
                opt_g.step()

    for a, b in zip(gan(ours), gan(by_hand), strict=True):
        assert equal(a, b)


def test_a_gan_with_windows_keeps_losses_apart():
    def ours(g, d, opt_g, opt_d, data):
        run = Run(device="cpu", max_epochs=1, accumulate=3)
        run.optimizer(opt_g, name="generator"), run.optimizer(opt_d, name="critic")
        for x, _ in walk(run, data):
            run.step(d(g(x).detach()) - d(x), optimizer=opt_d)
            run.step(-d(g(x)), optimizer=opt_g)
        assert run.global_step == len(data) // 3

    def by_hand(g, d, opt_g, opt_d, data):
        for index, (x, _) in enumerate(data):
            ((d(g(x).detach()) - d(x)) / 3).backward(inputs=list(d.parameters()))
            last = index % 3 == 2
            if last:
                opt_d.step(), opt_d.zero_grad()
            (-d(g(x)) / 3).backward(inputs=list(g.parameters()))
            if last:
                opt_g.step(), opt_g.zero_grad()

    for a, b in zip(gan(ours), gan(by_hand), strict=True):
        assert equal(a, b)


def test_sac_with_a_shared_trunk_is_its_twin():
    def build():
        torch.manual_seed(5)
        trunk, actor, critic = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        opt_c = torch.optim.Adam([*trunk.parameters(), *critic.parameters()], lr=1e-2)
        opt_a = torch.optim.Adam(actor.parameters(), lr=1e-2)
        return trunk, actor, critic, opt_c, opt_a

    def losses(trunk, actor, critic, x, y):
        return (
            lambda: nn.functional.cross_entropy(critic(trunk(x).tanh()), y),
            lambda: -(actor(trunk(x).tanh()).softmax(1) * critic(trunk(x).tanh())).sum(1).mean(),
        )

    data = batches(10)
    trunk, actor, critic, opt_c, opt_a = build()
    run = Run(device="cpu", max_epochs=1)
    run.optimizer(opt_c, name="critic"), run.optimizer(opt_a, name="actor")
    for x, y in walk(run, data):
        of_critic, of_actor = losses(trunk, actor, critic, x, y)
        run.step(of_critic(), optimizer=opt_c)
        run.step(of_actor(), optimizer=opt_a)
    ours = (trunk, actor, critic)
    trunk, actor, critic, opt_c, opt_a = build()
    for x, y in data:
        of_critic, of_actor = losses(trunk, actor, critic, x, y)
        opt_c.zero_grad(), of_critic().backward(), opt_c.step()
        opt_a.zero_grad(), of_actor().backward(), opt_a.step()
    for a, b in zip(ours, (trunk, actor, critic), strict=True):
        assert equal(a, b)


class SAM(torch.optim.Optimizer):
    """Sharpness-aware minimisation (Foret et al., arXiv:2010.01412), with a closure."""

    def __init__(self, parameters, base, rho=0.05):
        super().__init__(parameters, {"rho": rho})
        self.base = base(self.param_groups)

    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            loss = closure()
        parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in parameters]).norm() + 1e-12
        moves = [p.grad * (0.05 / norm) for p in parameters]
        for p, move in zip(parameters, moves, strict=True):
            p.add_(move)
        with torch.enable_grad():
            closure()
        for p, move in zip(parameters, moves, strict=True):
            p.sub_(move)
        self.base.step()
        return loss


CLOSURES = {
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=4),
    "sam": lambda p: SAM(p, lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9)),
}


@pytest.mark.parametrize("kind", CLOSURES)
@pytest.mark.parametrize("clip_norm", [None, 0.3])
def test_closures_are_their_twins(pair, kind, clip_norm):
    ours, twin = pair
    data = batches(6)
    run = Run(device="cpu", max_epochs=1, clip_norm=clip_norm)
    optimizer = run.optimizer(CLOSURES[kind](ours.parameters()))
    schedule = run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5), every="step")
    for x, y in walk(run, data):
        run.step(lambda x=x, y=y: nn.functional.cross_entropy(ours(x), y))
    by_hand = CLOSURES[kind](twin.parameters())
    theirs = torch.optim.lr_scheduler.StepLR(by_hand, 1, gamma=0.5)
    for x, y in data:

        def closure(x=x, y=y):
            by_hand.zero_grad()
            loss = nn.functional.cross_entropy(twin(x), y)
            loss.backward()
            if clip_norm:
                nn.utils.clip_grad_norm_(twin.parameters(), clip_norm)
            return loss

        by_hand.step(closure)
        theirs.step()
    assert equal(ours, twin)
    assert schedule.get_last_lr() == theirs.get_last_lr()
    assert run.global_step == 6


def test_a_closure_in_a_window_is_refused(pair):
    ours, _ = pair
    run = Run(device="cpu", accumulate=2)
    run.optimizer(CLOSURES["lbfgs"](ours.parameters()))
    with pytest.raises(BadSettings, match="fp16, accumulation, or for several optimizers"):
        run.step(lambda: ours(torch.ones(1, 6)).sum())


def test_a_loop_left_inside_a_window_is_an_error_that_names_the_ways_out(pair):
    ours, _ = pair
    run = Run(device="cpu", accumulate=4, max_epochs=1)
    run.optimizer(OPTIMIZERS["sgd"](run.model(ours).parameters()))
    for index, (x, y) in enumerate(walk(run, batches(8))):
        run.step(nn.functional.cross_entropy(ours(x), y))
        if index == 5:
            break
    before = [p.detach().clone() for p in ours.parameters()]
    with pytest.raises(OpenWindow, match=r"run\.flush\(\).*run\.discard\(\)"):
        next(walk(run, batches(8)))
    with pytest.raises(OpenWindow):
        run.evaluate(ours)
    assert all(map(torch.equal, before, ours.parameters())), "nothing was stepped meanwhile"
    run.discard()
    assert all(p.grad is None for p in ours.parameters())
    with run.evaluate(ours):
        pass
    assert run.global_step == 1


def test_flush_updates_with_what_the_window_holds(pair):
    ours, twin = pair
    data = batches(3)
    run = Run(device="cpu", accumulate=8, max_epochs=1)
    run.optimizer(torch.optim.SGD(run.model(ours).parameters(), lr=0.5))
    for x, y in data:
        run.step(nn.functional.cross_entropy(ours(x), y))
    run.flush()
    for x, y in data:
        (nn.functional.cross_entropy(twin(x), y) / 8).backward()
    for p in twin.parameters():
        p.grad.mul_(8 / 3)
    torch.optim.SGD(twin.parameters(), lr=0.5).step()
    assert equal(ours, twin)
    assert run.global_step == 1


def test_an_exception_in_the_body_steps_nothing(pair):
    ours, _ = pair
    run = Run(device="cpu", accumulate=4, max_epochs=1)
    run.optimizer(OPTIMIZERS["sgd"](run.model(ours).parameters()))
    before = [p.detach().clone() for p in ours.parameters()]
    with pytest.raises(ZeroDivisionError):
        for x, y in walk(run, batches(8)):
            run.step(nn.functional.cross_entropy(ours(x), y))
            _ = 1 / 0
    assert all(map(torch.equal, before, ours.parameters()))
    run.discard()


# --- precision ---


def blow_up(data, at):
    return [(x * 1e30 if index in at else x, y) for index, (x, y) in enumerate(data)]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_fp16_is_the_loop_with_a_scaler(pair, accumulate, kind):
    ours, twin = pair
    data = blow_up(batches(12), at=(4,))
    run = Run(device="cpu", precision="fp16", accumulate=accumulate, clip_norm=0.5, max_epochs=1)
    optimizer = run.optimizer(OPTIMIZERS[kind](run.model(ours).parameters()))
    schedule = run.scheduler(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9), every="step")
    for x, y in walk(run, data):
        with run.autocast():
            loss = nn.functional.cross_entropy(ours(x), y)
        run.step(loss)
    by_hand = OPTIMIZERS[kind](twin.parameters())
    theirs = torch.optim.lr_scheduler.ExponentialLR(by_hand, 0.9)
    scaler = torch.amp.GradScaler("cpu")
    skipped = 0
    for index, (x, y) in enumerate(data):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(twin(x), y)
        scaler.scale(loss / accumulate).backward()
        if index % accumulate == accumulate - 1:
            scaler.unscale_(by_hand)
            nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
            scale = scaler.get_scale()
            scaler.step(by_hand)
            scaler.update()
            if scaler.get_scale() < scale:
                skipped += 1
            else:
                theirs.step()
            by_hand.zero_grad()
    assert equal(ours, twin)
    assert run.skipped_steps == skipped == 1
    assert schedule.get_last_lr() == theirs.get_last_lr()
    assert run.global_step == 12 // accumulate, "a skipped step is a step of the run, not of the schedule"


def test_a_hand_called_step_on_scaled_gradients_is_refused(pair):
    ours, _ = pair
    run = Run(device="cpu", precision="fp16")
    optimizer = run.optimizer(OPTIMIZERS["sgd"](run.model(ours).parameters()))
    x, y = batches(1)[0]
    run.backward(nn.functional.cross_entropy(ours(x), y))
    with pytest.raises(ScaledGradients, match=r"run\.optimizer_step"):
        optimizer.step()
    run.optimizer_step()
    assert run.global_step == 1


def test_a_resumed_run_of_another_precision_starts_a_fresh_scale(pair):
    ours, _ = pair
    saved = Run(device="cpu", precision="bf16")
    saved.optimizer(OPTIMIZERS["sgd"](ours.parameters()))
    state = saved._stepper.index.of(None).state_dict()
    run = Run(device="cpu", precision="fp16")
    run.optimizer(OPTIMIZERS["sgd"](ours.parameters()))
    run._stepper.index.of(None).load_state_dict(state)
    assert run._stepper.index.of(None).scaler.get_scale() == 2.0**16


def test_bf16_is_the_loop_under_autocast(pair):
    ours, twin = pair
    data = batches(6)
    run = Run(device="cpu", precision="bf16-mixed", max_epochs=1)
    run.optimizer(OPTIMIZERS["sgd"](run.model(ours).parameters()))
    for x, y in walk(run, data):
        with run.autocast():
            loss = nn.functional.cross_entropy(ours(x), y)
        run.step(loss)
    by_hand = OPTIMIZERS["sgd"](twin.parameters())
    for x, y in data:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(twin(x), y)
        by_hand.zero_grad(), loss.backward(), by_hand.step()
    assert equal(ours, twin)


# --- which optimizer ---


def test_which_optimizer_must_be_said_where_there_are_two(pair):
    ours, other = pair
    run = Run(device="cpu")
    run.optimizer(OPTIMIZERS["sgd"](ours.parameters()))
    run.optimizer(OPTIMIZERS["sgd"](other.parameters()))
    with pytest.raises(BadPart, match="2 optimizers"):
        run.step(ours(torch.ones(1, 6)).sum())


def test_an_optimizer_that_the_run_does_not_know_is_refused(pair):
    ours, _ = pair
    run = Run(device="cpu")
    with pytest.raises(BadPart, match="no optimizer"):
        run.step(ours(torch.ones(1, 6)).sum())
    run.optimizer(OPTIMIZERS["sgd"](ours.parameters()))
    with pytest.raises(BadPart, match="does not belong"):
        run.step(ours(torch.ones(1, 6)).sum(), optimizer=OPTIMIZERS["sgd"](ours.parameters()))


def test_steps_outside_of_loops_count(pair):
    ours, _ = pair
    run = Run(device="cpu")
    run.optimizer(OPTIMIZERS["sgd"](ours.parameters()))
    for x, y in batches(3):
        run.step(nn.functional.cross_entropy(ours(x), y))
    assert run.global_step == 3
