"""Loops of the toolkit on the ranks of one group: `[STRATEGY]`; prints the results of each as JSON.

Global batches have 8 samples with any number of ranks, so the results do not depend on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

from truestep import Run
from truestep.errors import BadLoader

torch.set_num_threads(1)
GLOBAL = 8
STRATEGY = sys.argv[1] if len(sys.argv) > 1 else "auto"
GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(37, 6, generator=GENERATOR)
Y = X @ torch.randn(6, 1, generator=GENERATOR) + 0.1 * torch.randn(37, 1, generator=GENERATOR)
DATA = TensorDataset(X, Y)
Loop = Callable[[], dict[str, Any]]
LOOPS: dict[str, Loop] = {}
WITHOUT_PARTS = ("losses_of_a_closure", "sparse_gradients", "parameters_out_of_use")
"""Loops that are refused if the model is divided over the ranks."""


def loop(function: Loop) -> Loop:
    LOOPS[function.__name__] = function
    return function


def new_run(**settings: Any) -> Run:
    return Run(**{"seed": 3, "max_epochs": 2, "device": "cpu", "watch": False, "progress": False, "strategy": STRATEGY} | settings)


def network(size: int = 16) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, size), nn.Tanh(), nn.Linear(size, 1))


def weights(*modules: nn.Module) -> list[float]:
    return [float(value) for module in modules for p in module.parameters() for value in full(p).reshape(-1)[:3]]


def full(tensor: Any) -> torch.Tensor:
    return (tensor.full_tensor() if STRATEGY == "fsdp" and hasattr(tensor, "full_tensor") else tensor).detach()


def local_size(run: Run) -> int:
    return GLOBAL // run.world_size


def squared(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (net(x) - y).square()


def trained(step: Callable[[Run, nn.Module, torch.Tensor, torch.Tensor], object], **settings: Any) -> dict[str, Any]:
    with new_run(**settings) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(network())
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                step(run, net, x, y)
        return {"weights": weights(net), "steps": run.global_step}


@loop
def plain() -> dict[str, Any]:
    return trained(lambda run, net, x, y: run.step(squared(net, x, y).mean()))


@loop
def clipped() -> dict[str, Any]:
    return trained(lambda run, net, x, y: run.step(squared(net, x, y).mean()), clip_norm=0.3)


@loop
def accumulated() -> dict[str, Any]:
    return trained(lambda run, net, x, y: run.step(squared(net, x, y).mean()), accumulate=2, clip_norm=0.3)


@loop
def weighted_by_tokens() -> dict[str, Any]:
    def step(run: Run, net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        mask = (y > 0).float()
        run.step((squared(net, x, y) * mask).sum(), weight=mask.sum())

    return trained(step, accumulate=2)


@loop
def weighted_by_counts() -> dict[str, Any]:
    return trained(lambda run, net, x, y: run.step(squared(net, x, y).sum(), weight=len(x)), accumulate=3)


@loop
def one_line_at_a_time() -> dict[str, Any]:
    def step(run: Run, net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        run.backward(squared(net, x, y).mean())
        run.clip_grad_norm_(0.5)
        run.optimizer_step()
        run.zero_grad()

    return trained(step)


@loop
def backward_by_hand() -> dict[str, Any]:
    with new_run() as run:
        train = run.loader(DATA, local_size(run), shuffle=True, drop_last=True)
        net = run.model(network())
        optimizer = run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                optimizer.zero_grad()
                squared(net, x, y).mean().backward()
                optimizer.step()
        return {"weights": weights(net)}


@loop
def left_within_a_window() -> dict[str, Any]:
    with new_run(accumulate=4, max_epochs=1) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(network())
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for number, (x, y) in enumerate(run.train(train, net)):
                run.step(squared(net, x, y).mean())
                if number == 1:
                    break
            run.flush()
        return {"weights": weights(net), "steps": run.global_step}


@loop
def two_optimizers_in_turns() -> dict[str, Any]:
    with new_run(accumulate=2) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        maker, judge = run.model(nn.Linear(6, 6)), run.model(network())
        first = run.optimizer(torch.optim.Adam(maker.parameters(), lr=1e-2))
        second = run.optimizer(torch.optim.Adam(judge.parameters(), lr=1e-2))
        for _ in run.epochs():
            for x, y in run.train(train, maker, judge):
                run.step(squared(judge, x, y).mean() - 0.1 * judge(maker(x).detach()).mean(), optimizer=second)
                run.step(judge(maker(x)).square().mean(), optimizer=first)
        return {"weights": weights(maker, judge), "steps": run.global_step}


@loop
def two_optimizers_of_one_loss() -> dict[str, Any]:
    with new_run(clip_norm=0.3) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(network())
        both = [
            run.optimizer(torch.optim.SGD([net[0].weight, net[2].weight], lr=0.1)),
            run.optimizer(torch.optim.AdamW([net[0].bias, net[2].bias], lr=1e-2)),
        ]
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean(), optimizer=both)
        return {"weights": weights(net), "steps": run.global_step}


@loop
def parameters_out_of_use() -> dict[str, Any]:
    """A branch that each other step uses, one that only the samples of some ranks use, and one that none uses."""
    with new_run() as run:
        train = run.loader(DATA, local_size(run))
        net = run.model(nn.ModuleList([network(), network(), network(), nn.Linear(2, 2)]))
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                losses = squared(net[0], x, y)
                if run.global_step % 2:
                    losses = losses + squared(net[1], x, y)
                if bool((x[:, 0] > 1).any()):
                    losses = losses + (x[:, :1] > 1) * squared(net[2], x, y)
                run.step(losses.mean())
        return {"weights": weights(net), "unused": [p.grad is None for p in net[3].parameters()]}


class Branches(nn.Module):
    """A branch that each other step uses, one that only the samples of some ranks use, and one that none uses."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes, self.somewhere, self.never = (nn.Linear(6, 1) for _ in range(4))

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        result = self.always(x)
        if step % 2:
            result = result + self.sometimes(x)
        if bool((x[:, 0] > 1).any()):
            result = result + (x[:, :1] > 1) * self.somewhere(x)
        return result


@loop
def branches_of_a_model() -> dict[str, Any]:
    with new_run() as run:
        train = run.loader(DATA, local_size(run))
        net = run.model(Branches())
        run.optimizer(torch.optim.AdamW(net.parameters(), lr=0.01))  # would change parameters with a gradient of zero
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step((net(x, run.global_step) - y).square().mean())
        return {"weights": weights(net), "unused": [p.grad is None for p in net.never.parameters()]}


@loop
def branches_in_windows() -> dict[str, Any]:
    """Micro-batches of one window use other branches, and the last one may use fewer than the first."""
    with new_run(accumulate=3) as run:
        train = run.loader(DATA, local_size(run))
        net = run.model(Branches())
        run.optimizer(torch.optim.AdamW(net.parameters(), lr=0.01))
        for _ in run.epochs():
            for number, (x, y) in enumerate(run.train(train, net)):
                run.step((net(x, number) - y).square().mean())
        return {"weights": weights(net), "unused": [p.grad is None for p in net.never.parameters()]}


@loop
def parameters_that_are_unfrozen() -> dict[str, Any]:
    with new_run(max_epochs=3) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(network())
        net[0].requires_grad_(False)
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for epoch in run.epochs():
            net[0].requires_grad_(epoch > 0)
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
        return {"weights": weights(net)}


@loop
def averages_and_schedules() -> dict[str, Any]:
    with new_run() as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(network())
        optimizer = run.optimizer(torch.optim.AdamW(net.parameters(), lr=1e-2))
        run.scheduler(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10), every="step")
        average = run.ema(net, 0.8)
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
        return {"weights": weights(net, average.model), "lr": optimizer.param_groups[0]["lr"]}


@loop
def losses_of_a_closure() -> dict[str, Any]:
    with new_run() as run:
        train = run.loader(DATA, local_size(run), drop_last=True)
        net = run.model(network(4))
        run.optimizer(torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(lambda x=x, y=y: squared(net, x, y).mean())
        return {"weights": weights(net)}


@loop
def sparse_gradients() -> dict[str, Any]:
    with new_run() as run:
        words = torch.arange(40) % 7
        train = run.loader(TensorDataset(words, words.float()[:, None]), local_size(run), shuffle=True)
        net = run.model(nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 1)))
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
        return {"weights": weights(net)}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.outer(self.inner(self.norm(x)).tanh())


class Blocks(nn.Module):
    """Three blocks, a frozen part, and an embedding whose weight is that of the head too."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(6, 8)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.words, self.head = nn.Embedding(5, 8), nn.Linear(8, 5)
        self.head.weight = self.words.weight
        self.register_buffer("scale", torch.tensor(0.5))
        self.frozen.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.frozen(x) + self.scale * self.words((x[:, 0] > 0).long())
        for block in self.blocks:
            x = block(x)
        return self.head(x).sum(1, keepdim=True)


@loop
def blocks() -> dict[str, Any]:
    with new_run(accumulate=2, clip_norm=1.0) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        torch.manual_seed(3 + run.rank)  # rank 0 gives its weights to the others
        net = run.model(Blocks())
        run.optimizer(torch.optim.AdamW((p for p in net.parameters() if p.requires_grad), lr=1e-2))
        average = run.ema(net, 0.9)
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
            with run.evaluate(average.model):
                average.model(X)
        few = run.loader(TensorDataset(X[:9], Y[:9]), local_size(run), name="few")
        predicted = run.predict(average.model, few)
        return {"weights": weights(net, average.model), "predicted": predicted.flatten().tolist()}


@loop
def scaled_losses() -> dict[str, Any]:
    """Gradients of the first rows overflow, which one rank may hold alone: all ranks skip the step."""
    with new_run(precision="fp16", clip_norm=0.5, alerts=False) as run:
        train = run.loader(DATA, local_size(run))
        net = run.model(nn.Linear(6, 4))
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(train, net):
                factor = torch.tensor([float("inf") if run.global_step in (0, 3) else 1.0, 1.0, 1.0, 1.0])
                run.step(((net(x) - y).square() * factor).sum(1).mean())
        return {"weights": weights(net), "skipped": run.skipped_steps, "steps": run.global_step}


@loop
def weighted_blocks() -> dict[str, Any]:
    """A window that is left, one that is dropped, and sums with weights that differ between ranks."""
    with new_run(accumulate=3, max_epochs=1) as run:
        train = run.loader(DATA, local_size(run), shuffle=True)
        net = run.model(Blocks(), shard=Block)
        run.optimizer(torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.002))
        for part in range(3):
            for number, (x, y) in enumerate(run.train(train, net)):
                mask = (y > 0).float()
                run.step((squared(net, x, y) * mask).sum(), weight=mask.sum())
                if number == 1 + part:
                    break
            (run.flush if part < 2 else run.discard)()
        return {"weights": weights(net), "steps": run.global_step}


@loop
def evaluations() -> dict[str, Any]:
    """Each sample counts once; statistics of batch normalisation are those of rank 0 on all ranks."""
    with new_run() as run:
        test = run.loader(DATA, local_size(run))
        net = run.model(network())
        size, local = run.mean("size"), []
        with run.evaluate(net):
            for x, _ in run.batches(test):
                size.update(x.sum(1))
                local += x[:, 0].tolist()
        predicted = run.predict(net, test)
        norm = run.model(nn.BatchNorm1d(6))
        norm(X[run.rank :: 2])
        with run.evaluate(norm):
            statistics = run.gather(norm.running_mean[None])
        return {
            "mean": float(size),
            "again": f"{size:.6f}",
            "samples": len(run.gather(torch.tensor(local))),
            "order": torch.equal(predicted, net(X).detach()) or torch.allclose(predicted, net(X).detach(), atol=1e-6),
            "statistics": bool((statistics == statistics[0]).all()),
        }


@loop
def more_ranks_than_samples() -> dict[str, Any]:
    with new_run() as run:
        few = TensorDataset(X[:9], Y[:9])
        train = run.loader(few, local_size(run))
        net = run.model(network())
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        means = []
        for _ in run.epochs():
            seen = run.mean("seen")
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
                seen.update(x[:, 0])
                seen.update(float(x[0, 0]), 0.0)
            means.append(float(seen))
        weighted = weights(net)
        tokens = run.loader(few, local_size(run), name="tokens")
        for _ in range(2):
            for x, y in run.train(tokens, net):
                run.step(squared(net, x, y).sum(), weight=len(x))
        return {"weights": weighted + weights(net), "steps": run.global_step, "means": means}


def normed(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16, bias=False), *layers, nn.Tanh(), nn.Linear(16, 1))


@loop
def joint_batch_statistics() -> dict[str, Any]:
    """The last batch of 5 samples leaves some of four ranks without one."""
    with new_run(sync_batchnorm=True) as run:
        train, val = run.loader(DATA, local_size(run), shuffle=True), run.loader(DATA, 5)
        net = run.model(normed(nn.BatchNorm1d(16), nn.BatchNorm1d(16, affine=False, momentum=None)))
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
        keys = sorted(net.state_dict())
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
            with run.evaluate(net):
                loss = run.mean("loss")
                for x, y in run.batches(val):
                    loss.update(squared(net, x, y).mean(), len(x))
        statistics = [value for layer in net[1:3] for value in (*layer.running_mean[:3], *layer.running_var[:3])]
        same = run.gather(torch.stack(statistics)[None])
        return {
            "weights": weights(net),
            "statistics": list(map(float, statistics)),
            "same": bool((same == same[0]).all()),
            "loss": float(loss),
            "keys": " ".join(keys),
        }


@loop
def joint_statistics_of_images() -> dict[str, Any]:
    """Windows, recomputation and an average of the weights."""
    images = TensorDataset(X[:, :, None, None].expand(-1, -1, 3, 2) * torch.linspace(1, 2, 6).view(3, 2), Y)
    with new_run(sync_batchnorm=True, accumulate=2, max_epochs=1) as run:
        train = run.loader(images, local_size(run))
        block = nn.Sequential(nn.Conv2d(6, 8, 1), nn.BatchNorm2d(8), nn.ReLU())
        net = run.model(
            nn.Sequential(block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)), recompute=nn.Sequential
        )
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        ema = run.ema(net, decay=0.5)
        for _ in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
        layer = net[0][1]
        return {
            "weights": weights(net, ema.model),
            "statistics": [float(value) for value in (*layer.running_mean, *layer.running_var)],
            "seen": int(layer.num_batches_tracked),
        }


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield from zip(X, Y, strict=True)


@loop
def streams() -> dict[str, Any]:
    """All ranks make as many steps, and an evaluation reads each item once."""
    with new_run() as run:
        data = run.loader(Stream(), local_size(run))
        net = run.model(network())
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(data, net):
                run.step(squared(net, x, y).mean())
        steps = run.gather(torch.tensor([run.global_step]))
        seen = sum(len(x) for x, _ in run.batches(data))
        return {"same": bool((steps == steps[0]).all()), "seen": int(run.gather(torch.tensor([seen])).sum())}


@loop
def decisions_of_rank_0() -> dict[str, Any]:
    with new_run(max_epochs=20) as run:
        train = run.loader(DATA, local_size(run))
        net = run.model(network())
        optimizer = run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        run.scheduler(plateau, every="epoch", metric="loss")
        for epoch in run.epochs():
            for x, y in run.train(train, net):
                run.step(squared(net, x, y).mean())
            run.log({"loss": float(epoch) if run.is_main_process else -float(epoch)})
            if run.stalled("loss", patience=3):
                break
        return {"epoch": run.epoch, "lr": run.gather(torch.tensor([optimizer.param_groups[0]["lr"]])).unique().tolist()}


@loop
def random_numbers() -> dict[str, Any]:
    """Weights begin with the same values on all ranks, and drawn numbers differ."""
    with new_run() as run:
        torch.manual_seed(run.rank)
        net = run.model(network())
        run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
        next(run.steps(1))
        first, drawn = run.gather(full(net[0].weight)[None]), run.gather(torch.rand(1))
        return {"same": bool((first == first[0]).all()), "differ": len(drawn.unique()) == run.world_size}


@loop
def data_loaders() -> dict[str, Any]:
    with new_run() as run:
        alone = DataLoader(DATA, batch_size=4, shuffle=True)
        try:
            next(run.train(alone))
            refused = ""
        except BadLoader as error:
            refused = str(error)
        ranks = {"num_replicas": run.world_size, "rank": run.rank}
        sampler = DistributedSampler(DATA, **ranks, drop_last=True)
        divided = DataLoader(DATA, batch_size=4, sampler=sampler)
        orders = [torch.cat([x for x, _ in run.train(divided)])[:, 0].tolist() for _ in run.epochs()]
        return {"refused": refused, "orders": orders[0] != orders[1], "samples": len(run.gather(torch.tensor(orders[0])))}


if __name__ == "__main__":
    distributed: Any = torch.distributed
    distributed.init_process_group("gloo")
    left_out = WITHOUT_PARTS if STRATEGY == "fsdp" else ()
    results = {name: function() for name, function in LOOPS.items() if name not in left_out}
    if distributed.get_rank() == 0:
        sys.stdout.write(json.dumps(results) + "\n")
    distributed.destroy_process_group()
