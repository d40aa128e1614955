"""Remedies leave healthy programs as they are: the same losses to the last bit, and nothing applied."""

import copy
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from truestep.experiments.changes import CHANGES

NAMES = (
    "clip-held",
    "clip-in-scale",
    "drop-activation",
    "full-precision",
    "hold-all",
    "ignore-padding",
    "keep-gradients",
    "keep-layers",
    "keep-workers",
    "log-probabilities",
    "once-per-stream",
    "own-generators",
    "random-weights",
    "shuffle-training",
    "softmax-over-classes",
    "step-all",
    "step-rest",
)


def data(n=48):
    x = torch.randn(n, 4)
    return TensorDataset(x, (x.sum(1) > 0).long())


def network(outputs=2):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, outputs))


def plain():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(3):
        model.train()
        for x, y in DataLoader(data(), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            yield loss
        model.eval()
        with torch.no_grad():
            yield F.cross_entropy(model(torch.ones(4, 4)), torch.ones(4).long())


def accumulating(clear_first=False):
    model, loader = network(), DataLoader(data(56), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        for number, (x, y) in enumerate(loader, 1):
            loss = F.cross_entropy(model(x), y) / 4
            loss.backward()
            yield loss
            if number % 4 == 0 or number == len(loader):
                optimizer.step()
                optimizer.zero_grad(set_to_none=clear_first)


def windows_over_the_end_of_an_epoch():
    model, loader, number = network(), DataLoader(data(56), batch_size=8), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for x, y in loader:
            number += 1
            loss = F.cross_entropy(model(x), y) / 4
            loss.backward()
            yield loss
            if number % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()


def gan(critics=1, generator_first=False):
    fake, judge = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4)), network(1)
    ours = torch.optim.Adam(fake.parameters(), lr=1e-2)
    theirs = torch.optim.Adam(judge.parameters(), lr=1e-2)

    def of_judge():
        theirs.zero_grad()
        made = fake(torch.randn(8, 2))
        loss = F.softplus(-judge(torch.randn(8, 4))).mean() + F.softplus(judge(made)).mean()
        loss.backward()
        theirs.step()
        return loss

    def of_fake():
        ours.zero_grad()
        loss = F.binary_cross_entropy_with_logits(judge(fake(torch.randn(8, 2))), torch.ones(8, 1))
        loss.backward()
        ours.step()
        return loss

    for step in range(12):
        if generator_first:
            yield of_fake()
        yield of_judge()
        if not generator_first and step % critics == 0:
            yield of_fake()


def frozen():
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    yield from steps(model, optimizer)


def head_only():
    model = network()
    yield from steps(model, torch.optim.SGD(model[-1].parameters(), lr=0.1))


def several_rates():
    model = network()
    groups = [{"params": layer.parameters(), "lr": 0.1 / 2**n} for n, layer in enumerate(model) if n % 2 == 0]
    optimizer = torch.optim.AdamW(groups)
    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda step: 0.99**step] * 3)
    for loss in steps(model, optimizer):
        plan.step()
        yield loss


def steps(model, optimizer, count=15, loss_of=F.cross_entropy):
    for _ in range(count):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        loss = loss_of(model(x), (x.sum(1) > 0).long())
        loss.backward()
        optimizer.step()
        yield loss


def compiled():
    model = network()

    @partial(torch.compile, backend="eager", fullgraph=True)
    def loss_of(x, y):
        return F.nll_loss(F.log_softmax(model(x), 1), y) + F.cross_entropy(torch.tanh(model(x)).relu() + 1, y)

    yield from steps(lambda x: x, torch.optim.SGD(model.parameters(), lr=0.1), 5, loss_of)


def teacher():
    model = network()
    average, optimizer = copy.deepcopy(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x = torch.randn(8, 4)
        with torch.no_grad():
            wanted = average(x).softmax(1)
        loss = F.kl_div(F.log_softmax(model(x), 1), wanted, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        yield loss


def target_network_with_a_graph():
    model = network()
    target, optimizer = copy.deepcopy(model), torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(10):
        x = torch.randn(8, 4)
        loss = F.smooth_l1_loss(model(x).max(1).values, 0.9 * target(x).max(1).values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def perceptual():
    class Training(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = network(4)
            self.judge = nn.Linear(4, 3).eval()

    whole = Training()
    optimizer = torch.optim.Adam(whole.model.parameters(), lr=1e-2)
    for _ in range(10):
        x = torch.randn(8, 4)
        loss = F.mse_loss(whole.judge(whole.model(x)), whole.judge(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def teacher_in_a_list():
    class Student(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.hidden = network(3), [nn.Linear(4, 3)]

        def forward(self, x):
            with torch.no_grad():
                wanted = self.hidden[0](x)
            return F.mse_loss(self.body(x), wanted)

    model = Student()
    yield from steps(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_of=lambda loss, _: loss)


def scaled(second=False):
    model, other = network(), network()
    optimizer, plain = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(10):
        x = torch.randn(8, 4)
        y = (x.sum(1) > 0).long()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if second:
            plain.zero_grad()
            F.cross_entropy(other(x), y).backward()
            nn.utils.clip_grad_norm_(other.parameters(), max_norm=0.1)
            plain.step()
        scaler.unscale_(optimizer)
        yield nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        yield loss
    yield other[0].weight.sum()


def clipped_in_parts():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x = torch.randn(8, 4)
        loss = F.cross_entropy(model(x), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([], 1.0)
        nn.utils.clip_grad_norm_(model[0].parameters(), 0.01)
        nn.utils.clip_grad_value_(model[2].parameters(), 0.01)
        optimizer.step()
        yield loss


def closures():
    model, x = network(), torch.randn(16, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), (x.sum(1) > 0).long())
        loss.backward()
        return loss

    for _ in range(5):
        yield optimizer.step(closure)


def sharpness_aware():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x = torch.randn(8, 4)
        y = (x.sum(1) > 0).long()
        F.cross_entropy(model(x), y).backward()
        climbs = [0.05 * p.grad for p in model.parameters()]
        with torch.no_grad():
            torch._foreach_add_(list(model.parameters()), climbs)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            torch._foreach_sub_(list(model.parameters()), climbs)
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def steps_left_out():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(12):
        x = torch.randn(8, 4) * (float("nan") if step % 5 == 4 else 1.0)
        loss = F.cross_entropy(model(x), torch.ones(8).long())
        loss.backward()
        if not loss.isfinite():
            optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.nan_to_num()


def delayed_policy():
    policy, critic = network(1), network(1)
    ours, theirs = (torch.optim.Adam(m.parameters(), lr=1e-2) for m in (policy, critic))
    for step in range(15):
        x = torch.randn(8, 4)
        ours.zero_grad()
        theirs.zero_grad()
        loss = critic(x + policy(x)).pow(2).mean()
        loss.backward()
        theirs.step()
        if step % 3 == 2:
            ours.step()
        yield loss


def contrastive():
    model = nn.Linear(4, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x = torch.randn(8, 4)
        likeness = model(x) @ model(x + 0.1 * torch.randn(8, 4)).T
        rows, columns = likeness.log_softmax(1), F.log_softmax(likeness, dim=0).T
        attention = torch.softmax(likeness[:, :5], 0).sum()
        loss = F.nll_loss(rows, torch.arange(8)) + F.nll_loss(columns, torch.arange(8)) + 0 * attention
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def log_probabilities_by_class():
    model = nn.Sequential(network(3), nn.LogSoftmax(dim=1))
    yield from steps(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_of=F.nll_loss)


def cross_entropy_by_hand():
    def loss_of(logits, y):
        return F.nll_loss(logits, y) + logits.logsumexp(1).mean()

    model = network(3)
    yield from steps(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_of=loss_of)


def positive_outputs():
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(4, 8), relu, nn.Linear(8, 8), relu, nn.Linear(8, 1), nn.Softplus())
    for end in (nn.Softplus(), nn.Tanh(), nn.Sigmoid(), nn.ReLU(inplace=True)):
        model[-1] = end
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(5):
            x = torch.randn(8, 4)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x).squeeze(1), torch.sigmoid(x.sum(1)))
            loss.backward()
            optimizer.step()
            yield loss


def averaged_activation():
    model = nn.Sequential(nn.Conv1d(1, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    yield from steps(
        lambda x: 10 * torch.tanh(model(x[:, None])),
        torch.optim.SGD(model.parameters(), lr=0.1),
        loss_of=F.cross_entropy,
    )


def tokens(ignored=0, most=4):
    table = nn.Embedding(6, 8, padding_idx=0)
    head = nn.Linear(8, 6)
    optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(8):
        rows = torch.randint(1, 6, (4, 8)) * (torch.arange(8) < torch.randint(most, 8, (4, 1)))
        logits = head(table(rows)).flatten(0, 1)
        loss = F.cross_entropy(logits, rows.flatten(), ignore_index=ignored)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def new_head_in_its_own_optimizer():
    body, head = network(8), nn.Linear(8, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    yield from steps(lambda x: head(body(x)), optimizer, 5)
    head = nn.Linear(8, 3)
    both = [optimizer, torch.optim.SGD(head.parameters(), lr=0.1)]
    for _ in range(5):
        x = torch.randn(8, 4)
        for each in both:
            each.zero_grad()
        loss = F.cross_entropy(head(body(x)), torch.ones(8).long())
        loss.backward()
        for each in both:
            each.step()
        yield loss


def zeros_at_the_end():
    model = network(3)
    nn.init.zeros_(model[-1].weight)
    nn.init.ones_(model[0].weight)
    yield from steps(model, torch.optim.SGD(model.parameters(), lr=0.1))


def sixteen_bits():
    model = network().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    yield from steps(lambda x: model(x.bfloat16()).float(), optimizer)


class Shared(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from torch.arange(24.0)[info.id :: info.num_workers, None].expand(-1, 4)


class Simulated(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.from_numpy(self.rng.normal(size=4)).float()


def own_generator(worker):
    get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())


def loaded(loader, epochs=1):
    model = network(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(epochs):
        for x in loader():
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            yield loss


def streamed():
    return loaded(lambda: DataLoader(Shared(), batch_size=3, num_workers=2))


def simulated():
    return loaded(lambda: DataLoader(Simulated(), batch_size=3, num_workers=2, worker_init_fn=own_generator))


def kept_by_the_script():
    loader = DataLoader(data(24).tensors[0], batch_size=6, shuffle=True, num_workers=1, persistent_workers=True)
    return loaded(lambda: loader, epochs=3)


def in_order_of_time():
    x = torch.linspace(0, 9, 48)[:, None].expand(-1, 4)
    loader = DataLoader(TensorDataset(x, (10 * x[:, 0].sin()).long()), batch_size=8)
    model = network(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x)[:, 0], y.float())
            loss.backward()
            optimizer.step()
            yield loss


PROGRAMS = {
    function.__name__: function
    for function in (
        plain, accumulating, windows_over_the_end_of_an_epoch, gan, frozen, head_only, several_rates, compiled, teacher,
        target_network_with_a_graph, perceptual, teacher_in_a_list, scaled, clipped_in_parts, closures, sharpness_aware,
        steps_left_out, delayed_policy, contrastive, log_probabilities_by_class, cross_entropy_by_hand, sixteen_bits,
        zeros_at_the_end, positive_outputs, averaged_activation, tokens, new_head_in_its_own_optimizer, streamed,
        simulated, kept_by_the_script,
        in_order_of_time,
    )
}  # fmt: skip
PROGRAMS |= {
    "zeros instead of None": lambda: accumulating(clear_first=False),
    "five steps of the critic": lambda: gan(critics=5),
    "the generator first": lambda: gan(generator_first=True),
    "one of two optimizers scaled": lambda: scaled(second=True),
    "little padding that counts": lambda: tokens(ignored=-100, most=6),
}
WORKERS = {"streamed", "simulated", "kept_by_the_script"}
WITH_WORKERS = {"keep-workers", "once-per-stream", "own-generators", "shuffle-training", "step-rest"}


def losses(program):
    torch._dynamo.reset()
    torch.manual_seed(0)
    return [float(loss.detach()) for loss in PROGRAMS[program]()]


SLOW = {
    "compiled",
    "gan",
    "the generator first",
    "positive_outputs",
    "accumulating",
    "windows_over_the_end_of_an_epoch",
}


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            name, marks=[pytest.mark.slow] * (name in SLOW) + [pytest.mark.program] * (place % 3 > 0 or name in WORKERS)
        )
        for place, name in enumerate(PROGRAMS)
    ],
)
def test_healthy_programs_are_left_as_they_are(program):
    alone = losses(program)
    for name in NAMES:
        if program in WORKERS and name not in WITH_WORKERS:
            continue
        change = CHANGES[name]()
        with ExitStack() as stack:
            change.install(stack)
            changed = losses(program)
        assert changed == alone, name
        assert change.applied == 0, name
