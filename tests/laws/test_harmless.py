"""Law 3: a failure inside a probe or a rule is recorded, and the training continues as without supervision."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import io
import pkgutil
import random
import runpy
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import planted
import pytest
import torch
import torch.distributed as dist
from planted import MOST_AT_ONCE, Planted, in_turns, plant
from tiers import few
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.distributed.fake_pg import FakeStore

import truestep.probes
import truestep.seams
from truestep import events as ev
from truestep.findings import Outcome
from truestep.rules import Rule, all_rules
from truestep.supervision import Session
from truestep.supervision.judge import Judge
from truestep.supervision.stream import EventStream

ENTRIES = {
    "OptimizerProbe": {"before", "after", "_close"},
    "BackwardProbe": {"take_over", "is_next"},
    "ModuleProbe": {"enter", "leave"},
    "CaptureProbe": {"begin", "end"},
    "Coast": {"wake", "end"},
    "Unseen": {"begin", "met"},
    "Scene": {"fail", "close_step", "relieve"},
}
"""Called by the code of torch, beside methods with `sees`: these catch errors below them. Others may raise."""
BUILDING = {"install", "sees", "__init__", "__init_subclass__", "patch", "weave", "all_probes"}
BUILDING |= {"wrap", "wrap_optimizer", "wrap_module", "wrap_iter", "wrap_next", "wrap_iterator", "replace", "watch"}
BUILDING |= {"untraced", "mark_untraced", "leave_uncompiled", "engine_state", "scales"}
NOT_OF_PROBES = {"is_compiled", "uncompiled", "uncompiled_name", "wrapped_model"}
"""Functions of seams that only the toolkit calls."""


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 4)]
        self.shift = torch.randn(4)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.BatchNorm1d(4), nn.Linear(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(nn.functional.dropout(nn.Linear(4, 4)(self.layers[0](x + self.shift)), 0.1))


def train() -> list[object]:
    """Use every seam; return everything that came out of it."""
    torch.manual_seed(0)
    said: list[object] = []
    model = Growing()
    optimizer = torch.optim.SGD(model.head.parameters(), 0.1, momentum=0.9)
    optimizer.add_param_group({"params": model.layers[0].parameters()})
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    by_hand = torch.ones(3, requires_grad=True)
    kept = []
    for epoch in range(3):
        model.train()
        for number, (x, y) in enumerate(torch.utils.data.DataLoader(data, 4, shuffle=True)):
            if number % 3:
                optimizer.zero_grad()
            else:
                model.zero_grad()
            torch.set_anomaly_enabled(number == 1)
            out = model(x) if number % 2 else model.forward(x)
            loss = nn.functional.cross_entropy(out.softmax(1) * by_hand, y)
            kept.append(loss)
            if epoch == 1:
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            else:
                (loss / 2).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                nn.utils.clip_grad_value_(model.parameters(), 0.1)
                optimizer.step()
            schedule.step()
            with torch.no_grad():
                by_hand -= 0.1 * by_hand.grad
            said.append(loss.item())
        plateau.step(loss.detach())
        model.eval()
        with torch.no_grad():
            said.append(model(data.tensors[0]))
        nn.functional.mse_loss(model(data.tensors[0])[:, :1], torch.zeros(24, 1))
        wide = (model(data.tensors[0])[:, :1] - torch.zeros(24)).pow(2).mean()
        (slope,) = torch.autograd.grad(wide, by_hand, allow_unused=True)
        said.append(slope)
    for _ in range(10):
        kept.append(model(data.tensors[0]).sum())
        kept[-1].backward(retain_graph=True)
    lbfgs = torch.optim.LBFGS(model.head.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        lbfgs.zero_grad()
        loss = (model(data.tensors[0]) - torch.zeros(24, 3)).abs().mean()
        loss.backward()
        return loss

    said.append(lbfgs.step(closure).item())
    (model(data.tensors[0]).sum() * float("nan")).log().backward()
    file = io.BytesIO()
    state = model.state_dict()
    torch.save({"model": state}, file)
    file.seek(0)
    model.load_state_dict(torch.load(file)["model"])
    model.load_state_dict(state)
    model.load_state_dict({f"module.{name}": value for name, value in copy.deepcopy(state).items()}, strict=False)
    left = [*model.state_dict().values(), *(p.grad for p in model.parameters()), torch.get_rng_state()]
    return said + [None if value is None else value.clone() for value in left]


def train_on_ranks() -> list[object]:
    """Run a rank that averages gradients by hand; torch's "fake" group stands in for the other rank."""
    torch.manual_seed(0)
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        data = [(torch.randn(4), float(number % 2)) for number in range(32)]
        sampler = torch.utils.data.DistributedSampler(data)
        model = nn.Linear(4, 3)
        wrapped = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
        wrapped.module.bias.require_grad = False  # a slip of the pen
        optimizer = torch.optim.SGD([*model.parameters(), *wrapped.parameters()], 0.1)
        said: list[object] = []
        for _ in range(2):
            for x, y in torch.utils.data.DataLoader(data, 4, sampler=sampler):
                with wrapped.no_sync():  # torch's "fake" group has no result for the reducer
                    outputs = wrapped(x)
                penalty = outputs.square().mean().item()
                loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y.float())
                loss = loss + outputs.sum() + 0.1 * penalty
                model(x).softmax(1)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                dist.all_gather([torch.zeros(()), torch.zeros(())], loss.detach())
                optimizer.step()
                said.append(loss.item())
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(model(x).sum() * float("inf")).backward()
            scaler.step(optimizer)  # skipped
            scaler.update()
    finally:
        del wrapped
        dist.destroy_process_group()
    return [*said, model.weight.detach().clone()]


def train_contrasts() -> list[object]:
    """Compare samples with each other, and evaluate by figures: first steps, which are read closely."""
    torch.manual_seed(0)
    return [*_contrast(), *_measure(), torch.get_rng_state()]


def train_badly() -> list[object]:
    """Run cases that are read closely: a cut graph, frozen and rounded parameters, a target that stays, NaN."""
    torch.manual_seed(0)
    said: list[object] = []
    encoder, classifier = nn.Linear(4, 4), nn.Linear(4, 3)
    frozen, rounded = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(8, dtype=torch.bfloat16))
    turned = nn.Parameter(torch.randn(2, 2, dtype=torch.cfloat))
    words = nn.Sequential(nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 9))
    dead = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    nn.init.constant_(dead[0].bias, -50.0)
    linear = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1))
    frozen.requires_grad_(False)
    frozen.grad = torch.ones(4)
    modules = nn.ModuleList([encoder, classifier, words, dead, linear])
    target, weights = copy.deepcopy(encoder), torch.linspace(0.5, 2.0, 8)
    optimizer = torch.optim.SGD([*modules.parameters(), frozen, rounded, turned], 1e-4, weight_decay=0.01)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda updates, most=1000: 1 - updates / most)
    for step in range(130):
        x = torch.randn(8, 4)
        optimizer.zero_grad(set_to_none=False)
        features = encoder(x).detach()
        with torch.no_grad():
            said.append(target(x).sum().item())
        scores = classifier(features)
        loss = nn.functional.cross_entropy(scores, torch.arange(8) % 3)
        loss = loss + nn.functional.binary_cross_entropy_with_logits(scores, torch.full((8, 3), 2.0).tril())
        loss = (
            loss
            + nn.functional.mse_loss(torch.relu(scores), x[:, :3] * 5)
            + nn.functional.mse_loss(dead(x)[:, 0], x[:, 0])
            + nn.functional.mse_loss(linear(x)[:, 0], x[:, 1])
            + (nn.functional.mse_loss(linear(x)[:, 0], x[:, 2]) * weights).sum() / weights.sum()
            + (nn.functional.cross_entropy(scores, torch.arange(8) % 3) * weights).mean()
        )
        tokens = torch.tensor([[3, 4, 5, 0, 0, 0]] * 4)
        loss = loss + nn.functional.cross_entropy(words(tokens).flatten(0, 1), tokens.flatten())
        drawn = torch.distributions.Normal(linear(x).expand(8, 4), 1.0)
        loss = loss + dead(drawn.sample()).mean() + drawn.mean.square().mean()
        loss = loss - torch.distributions.Normal(linear(x), 1.0).log_prob(x[:, :1]).mean()
        following = linear(x.flip(0))[:, 0]
        loss = loss + nn.functional.mse_loss(linear(x)[:, 0], x[:, 2] + 0.9 * (x[:, 3] > 0) * following)
        loss = loss + rounded.float().sum() + (turned.mH @ turned).abs().sum()
        loss.backward()
        optimizer.step()
        said.append(loss.item())
        if step == 20:
            frozen.grad = None
    with torch.no_grad():
        classifier.weight[0, 0] = torch.inf
    broken = (classifier(encoder(x)) - torch.inf).sum()
    broken.backward()
    optimizer.step()
    exchanged = [nn.Linear(4, 3), nn.Linear(4, 3)]
    for layer in exchanged:
        torch.optim.SGD(layer.parameters(), 0.1)
        layer(x).sum().backward()
    torch.utils.swap_tensors(*(layer.bias for layer in exchanged))
    gradients = [layer.weight.grad for layer in exchanged]
    exchanged[0].weight.grad = exchanged[1].weight.grad = None
    torch.utils.swap_tensors(*gradients)
    exchanged[0](x).sum().backward()
    said.extend(layer.bias.grad.clone() for layer in exchanged)
    for _ in range(4):
        torch.manual_seed(7)
        adam = torch.optim.Adam(exchanged[0].parameters())
        exchanged[0](nn.functional.dropout(x)).sum().backward()
        adam.step()
    said.append(copy.deepcopy(linear[0])(x).detach())
    left = [*modules.state_dict().values(), frozen, rounded.float(), torch.view_as_real(turned), torch.get_rng_state()]
    return said + [value.detach().clone() for value in left]


class Falling:
    """A learning rate that falls."""

    def __init__(self) -> None:
        self.lr = 0.1

    def step(self) -> None:
        self.lr = self.lr * 0.9


def _contrast() -> list[object]:
    """Train on scores between samples and on codes that `torch.normal` draws, with rates that nothing reads."""
    encoder, decoder, rate = nn.Linear(6, 8), nn.Linear(4, 6), Falling()
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    torch.manual_seed(3)
    points = torch.randn(16, 6)
    for step in range(4):
        lr = 0.1 * 0.9**step
        adam.lr = lr  # type: ignore[attr-defined]
        rate.step()
        mean, spread = encoder(points).chunk(2, dim=1)
        spread = spread.exp()
        code = torch.normal(mean.detach(), spread.detach())
        views = nn.functional.normalize(encoder(points), dim=0)
        loss = (decoder(code) - points).square().mean() + mean.square().mean() + spread.mean()
        adam.zero_grad()
        (loss + nn.functional.cross_entropy(views @ views.T, torch.arange(16))).backward()
        adam.step()
    return [weight.detach().clone() for weight in encoder.parameters()]


def _measure() -> list[object]:
    """Train on scrambled images and on padding; measure figures that are others than their names say."""
    torch.manual_seed(5)
    images = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(256, 3))
    words = nn.Sequential(nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 9))
    slope = torch.linspace(0, 1, 10)
    smooth = torch.rand(12, 1, 1, 3) + slope[:, None, None] * torch.rand(12, 1, 1, 3) + slope[None, :, None]
    pictures, labels = smooth.reshape(12, 3, 10, 10), torch.arange(12) % 3
    tokens = torch.tensor([[3, 4, 5, 0, 0, 0], [1, 2, 3, 4, 0, 0]] * 4)
    adam = torch.optim.Adam([*images.parameters(), *words.parameters()], lr=0.01)
    best, kept, said = float("inf"), images.state_dict(), []
    for _ in range(4):
        each = nn.functional.cross_entropy(words(tokens).transpose(1, 2), tokens, reduction="none")
        loss = nn.functional.cross_entropy(images(pictures), labels) + each.mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        train_loss = loss.item()
        images.eval()
        with torch.no_grad():
            scores = images(pictures)
            val_loss = nn.functional.cross_entropy(scores, labels).item()
            predicted = scores.argmax(1)
            hits = int(((predicted == 1) & (labels == 1)).sum())
            recall = hits / max(1, int((predicted == 1).sum()))
            perplexity = 2**val_loss
        images.train()
        said += [recall, perplexity]
        if train_loss < best:
            best, kept = train_loss, copy.deepcopy(images.state_dict())
    return [*said, *(value.clone() for value in kept.values())]


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 8, batch_first=True)
        self.mix, self.out = nn.Linear(16, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, h = self.gru(x, h)
        return self.out(torch.relu(self.mix(torch.cat([y, y], -1)))), h


def train_on_sequences() -> list[object]:
    """Train a decoder that joins a result with itself; generate from one state; train on an overlap of raw scores."""
    torch.manual_seed(6)
    decoder, start = Decoder(), torch.randn(1, 3, 8)
    steps, rates = torch.randn(3, 7, 4), {"rate": 0.1}
    adam = torch.optim.Adam(decoder.parameters(), lr=rates["rate"])
    mask = (torch.rand(3, 6, 4) > 0.5).float()
    said: list[object] = []
    for epoch in range(8):
        scores, _ = decoder(steps[:, :-1], start)
        overlap = 2 * (scores * mask).sum() / (scores.sum() + mask.sum() + 1)
        chosen = nn.functional.one_hot(scores.argmax(-1), 4).float()
        loss = (scores - steps[:, 1:]).square().mean() + 0.01 * overlap + 0.1 * (chosen * mask).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        rates["rate"] = 0.1 * 0.9**epoch
        decoder.eval()
        with torch.no_grad():
            token, made = steps[:, :1], []
            for _ in range(6):
                following, _after = decoder(token, start)
                token = following.tanh()
                made.append(token)
        decoder.train()
        said.append(torch.cat(made, 1))
    return said


class Pooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(8))
        self.query.data.fill_(0.3)  # no version counter counts it
        self.project = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, padding: torch.Tensor, form: int) -> torch.Tensor:
        values = self.project(x)
        pairs, keep = values @ values.mT, (~padding).float().unsqueeze(1)
        forms = (
            lambda: (pairs * keep).softmax(-1),
            lambda: torch.where(padding.unsqueeze(1), pairs, 0.0).unsqueeze(1).transpose(0, 1).softmax(-1).squeeze(0),
            lambda: (pairs * (torch.rand_like(pairs) > 0.2)).softmax(-1),
            lambda: pairs.masked_fill(padding.unsqueeze(1), 0.0).log_softmax(-1).exp() * keep,
        )
        scores = values @ self.query
        scores[padding] = 0.0
        return ((forms[form]() @ values).mT @ (scores / 2).softmax(-1).unsqueeze(2)).squeeze(2)


def train_with_masks() -> list[object]:
    """Train an autoencoder by attention with masks of zeros, in an order that `random.shuffle` overwrites."""
    torch.manual_seed(7)
    random.seed(7)
    pool, coder, decoder = Pooling(), nn.Linear(8, 6), nn.Linear(3, 8)
    adam = torch.optim.Adam([*pool.parameters(), *coder.parameters(), *decoder.parameters()], lr=0.01)
    x, lengths, order = torch.randn(24, 9, 8), torch.randint(2, 9, (24, 1)), torch.arange(24)
    padding = torch.arange(9) >= lengths
    said: list[object] = []
    for step in range(8):
        random.shuffle(order)
        rows = order[:12]
        pooled = pool(x[rows], padding[rows], step % 4)
        mean, logs = coder(pooled).chunk(2, 1)
        made = decoder(mean + torch.randn_like(mean) * (0.5 * logs).exp())
        divergence = -0.5 * (1 + logs - mean.square() - logs.exp()).sum(1).mean()
        twice = nn.functional.logsigmoid(pooled.sigmoid()).mean()
        (slope,) = torch.autograd.grad(made.sum(), pooled, retain_graph=True)
        residual = slope + made.mean(1, keepdim=True)
        loss = (made - x[rows].mean(1)).square().mean() + divergence - 0.1 * twice + residual.square().mean()
        kinds = x[rows].mean(1).argmax(1)
        loss = loss + nn.functional.cross_entropy(x[rows].mean(1) + 0.001 * pooled, kinds)
        adam.zero_grad()
        loss.backward()
        adam.step()
        said.append(loss.detach())
    return said


def train_by_functions() -> list[object]:
    """Train functions without modules, as a script: the frames of this file are not those of a program."""
    script = Path(__file__).parent / "scripts" / "trained_functions.py"
    return list(runpy.run_path(str(script), run_name="__main__")["results"])


def train_in_folds() -> list[object]:
    """Train on folds with mistakes in losses, as a script."""
    script = Path(__file__).parent / "scripts" / "trained_in_folds.py"
    return list(runpy.run_path(str(script), run_name="__main__")["results"])


def train_on_margins() -> list[object]:
    """Train on margins, cosines by hand, counts, errors over values of both signs, and a penalty on gradients."""
    torch.manual_seed(8)
    layer, critic, said = nn.Linear(6, 12), nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten()), list[object]()
    adam = torch.optim.Adam([*layer.parameters(), *critic.parameters()], lr=1e-2)
    x, images = torch.randn(12, 5, 6), torch.randn(12, 1, 6, 6, requires_grad=True)
    labels, level = (torch.arange(12) % 3 == 0).float(), torch.linspace(-1, 1, 12)
    for _ in range(3):
        out = layer(x)
        score, (one, two) = out[:, 0, 0], (F.normalize(part) for part in out.chunk(2, -1))
        each = out.view(12, 5, 2, 6).unbind(2)
        products = [one @ two.transpose(1, 2), F.normalize(each[0]) @ F.normalize(each[1]).mT]
        (slopes,) = torch.autograd.grad(critic(images).sum(), images, create_graph=True)
        losses = [
            torch.relu(1 - labels * score).mean(), torch.maximum(torch.zeros(12), 1 - labels * score).mean(),
            F.soft_margin_loss(score, labels), F.softplus(-labels * score).mean(),
            torch.log1p(torch.exp(-labels * score)).mean(), F.hinge_embedding_loss(score, labels),
            F.cosine_embedding_loss(out[:, 0], out[:, 1], labels), sum(one.square().mean() for one in products),
            F.poisson_nll_loss(F.softplus(score), labels), ((score - level).abs() / level).mean(),
            ((slopes.norm(dim=1) - 1) ** 2).mean(),
        ]  # fmt: skip
        adam.zero_grad()
        sum(losses).backward()
        adam.step()
        said += [loss.detach() for loss in losses]
    return [*said, *layer.parameters(), torch.get_rng_state()]


PROGRAMS = (
    train, train_badly, train_contrasts, train_on_ranks, train_on_sequences, train_with_masks, train_by_functions,
    train_on_margins, train_in_folds,
)  # fmt: skip
PLAIN = {program: program() for program in PROGRAMS}


def same(result: list[object], program: Callable[[], list[object]] = train) -> None:
    for one, two in zip(result, PLAIN[program], strict=True):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one.nan_to_num(7.5), two.nan_to_num(7.5))  # type: ignore[attr-defined]
        else:
            assert one == two


def _modules() -> list[Any]:
    """Return the modules of probes and seams; those of active checks have a separate law."""
    found = [
        info.name
        for package in (truestep.probes, truestep.seams)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    active = tuple(f"truestep.probes.{room}" for room in ("active", "copies", "evaluation", "figures", "variables"))
    return [importlib.import_module(name) for name in found if not name.startswith(active)]


def internals() -> Iterator[str]:
    """Name every function and method of the probes that is not an entry."""
    for module in _modules():
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__ or name in BUILDING | NOT_OF_PROBES:
                continue
            if isinstance(value, FunctionType):
                yield f"{module.__name__}:{name}"
            elif inspect.isclass(value):
                kept = ENTRIES.get(name, set()) | BUILDING
                for method, body in vars(value).items():
                    written = getattr(getattr(body, "__func__", body), "__code__", None)
                    if written is not None and written.co_filename == module.__file__ and method not in kept:
                        yield f"{module.__name__}:{name}.{method}"


RULES_AT_ONCE = 8


@functools.cache
def reached(program: Callable[[], list[object]]) -> frozenset[str]:
    def run() -> None:
        with Session():
            same(program(), program)

    return planted.reached(internals(), run)


@pytest.mark.program
def test_the_programs_reach_most_internals() -> None:
    both = frozenset().union(*map(reached, PROGRAMS))
    assert len(both) >= 0.82 * len([name for name in internals() if ":Coast." not in name])


def fail(names: Collection[str], program: Callable[[], list[object]], once: bool) -> list[str]:
    """Run a program while internals raise; check that it is as it was, and return those that were called."""
    calls: list[str] = []
    session = Session()
    session.start()
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            plant(patch, name, _modules(), calls, once)
        try:
            result = program()
        except Planted as error:
            pytest.fail(f"reached the program: {error}")
        finally:
            summary = session.stop()
    same(result, program)
    others = [error for error in summary.internal_errors if not ("Traceback" in error and "Planted" in error)]
    assert others == []
    assert len(summary.internal_errors) <= MOST_AT_ONCE
    unrecorded = [name for name in set(calls) if not any(f"Planted: {name}\n" in e for e in summary.internal_errors)]
    assert not unrecorded or len(summary.internal_errors) == MOST_AT_ONCE
    return calls


def room(name: str) -> str:
    """Return the package of an internal, such as "probes.backward"."""
    return ".".join(name.split(".")[1:3]) if name.startswith("truestep.probes.") else "seams"


@pytest.mark.program
@pytest.mark.parametrize("package", sorted({room(name) for name in internals()}))
def test_internals_that_raise_once_never_reach_the_program(package: str) -> None:
    """Those of a room together, and in a later run those that were not reached because an earlier one raised."""
    missed = {name for name in internals() if room(name) == package}
    for program in PROGRAMS:
        in_turns(missed & reached(program), functools.partial(fail, program=program, once=True))
        missed -= reached(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(internals()))
def test_an_internal_that_always_raises_never_reaches_the_program(name: str) -> None:
    program = next((program for program in PROGRAMS if name in reached(program)), None)
    if program is not None:
        fail([name], program, once=False)


@pytest.mark.parametrize("at", [0, 3, 17, "all"])
def test_an_event_that_cannot_be_emitted_never_reaches_the_program(at: object) -> None:
    count = 0

    def also(event: ev.Event) -> None:
        nonlocal count
        count += 1
        if at in ("all", count - 1):
            raise Planted

    with Session(also=also) as session:
        result = train()
    same(result)
    assert len(session.stop().internal_errors) >= 1


def fail_rules(rules: Collection[str], patch: pytest.MonkeyPatch) -> None:
    """Let rules raise at every event; check that these are not observed, and that the others are as they were."""

    def observe(self: Rule, event: ev.Event, run: object) -> None:
        raise Planted

    for rule in rules:
        patch.setattr(all_rules()[rule], "observe", observe)
    with Session() as session:
        result = train()
    same(result)
    summary = session.stop()
    assert all(any(f"rule {rule}\nTraceback" in error for rule in rules) for error in summary.internal_errors)
    for rule in rules:
        verdict = session.verdicts[rule]
        if any(rule in error for error in summary.internal_errors):
            assert (rule, verdict.outcome, verdict.reason) == (rule, Outcome.NOT_OBSERVED, "the rule failed")
    others = [one.outcome for id, one in session.verdicts.items() if id not in rules]
    assert Outcome.CLEAR in others


@pytest.mark.parametrize("first", few(3, range(0, len(all_rules()), RULES_AT_ONCE)))
def test_rules_that_raise_are_not_observed(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_rules(sorted(all_rules())[first : first + RULES_AT_ONCE], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(all_rules()))
def test_a_rule_that_raises_is_not_observed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_rules([rule], monkeypatch)


@pytest.mark.parametrize("method", ["ended", "again", "findings", "verdict"])
def test_every_method_of_a_rule_may_raise(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*args: object) -> object:
        raise Planted

    monkeypatch.setattr(all_rules()["missing-zero-grad"], method, raising)
    with Session() as session:
        result = train()
    same(result)
    summary = session.stop()
    assert len(summary.verdicts) == len(all_rules())


@pytest.mark.parametrize("owner", [Judge, EventStream])
def test_what_keeps_the_events_may_raise(owner: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*args: object, **kwargs: object) -> object:
        raise Planted

    session = Session()
    session.start()
    with monkeypatch.context() as patch:
        patch.setattr(owner, "show" if owner is Judge else "close", raising)
        result = train()
    same(result)
    assert session.stop().internal_errors


class Awkward(dict):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[str]:
        raise Planted


def _odd_module() -> object:
    class Odd(nn.Linear):
        def __eq__(self, other: object) -> bool:
            raise Planted

        __hash__ = nn.Module.__hash__

    return Odd(2, 1)(torch.ones(1, 2)).sum().backward()


def _odd_result() -> object:
    class Result:
        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]
            raise Planted

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self) -> Result:
            return Result()

    return Odd()()


def _odd_dataset() -> object:
    class Odd(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __getattr__(self, name: str) -> object:
            raise Planted if name == "dataset" else AttributeError(name)

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            return index

    return list(torch.utils.data.DataLoader(Odd()))


def _odd_optimizer() -> object:
    class Odd(torch.optim.SGD):
        __slots__ = ()

        @property
        def param_groups(self) -> list[Any]:
            return self.__dict__["param_groups"]

        @param_groups.setter
        def param_groups(self, value: list[Any]) -> None:
            self.__dict__["param_groups"] = value

    weight = nn.Parameter(torch.ones(2))
    optimizer = Odd([weight], 0.1)
    optimizer.param_groups[0]["lr"] = "0.1"
    weight.sum().backward()
    return None


@pytest.mark.parametrize("odd", [_odd_module, _odd_result, _odd_dataset, _odd_optimizer])
def test_odd_objects_of_the_program_raise_nothing(odd: Callable[[], object]) -> None:
    with Session():
        odd()


def test_a_dict_that_cannot_be_listed_is_saved_as_ever() -> None:
    plain, watched = io.BytesIO(), io.BytesIO()
    torch.save(Awkward(a=1), plain)
    with Session() as session:
        torch.save(Awkward(a=1), watched)
    assert len(plain.getvalue()) == len(watched.getvalue())
    assert len(session.stop().internal_errors) == 1


def test_ctrl_c_and_exit_pass_through() -> None:
    for error in (KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            with Session():
                model = nn.Linear(2, 1)
                model.register_forward_hook(lambda *_: (_ for _ in ()).throw(error()))
                model(torch.ones(1, 2))
