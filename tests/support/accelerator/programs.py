"""Training programs for any device: generators that pause after each step and return their results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from accelerator.place import Place

Made = tuple[str, ...]
Program = Callable[[Place, int], Generator[None, None, Made]]


def net(place: Place) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(144, 10)]
    return nn.Sequential(*layers).to(place.device)


def batches(place: Place, steps: int, **options: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Give batches that lie on the device; with options of a DataLoader, from one."""
    draw = torch.Generator().manual_seed(1)
    x = torch.rand(8 * steps, 1, 8, 8, generator=draw)
    y = torch.randint(0, 10, (8 * steps,), generator=draw)
    if options:
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 8, **options)
        for pair in loader:
            yield tuple(tensor.to(place.device, non_blocking=True) for tensor in pair)
    else:
        yield from zip(x.to(place.device).split(8), y.to(place.device).split(8), strict=True)


def made(place: Place, model: nn.Module, optimizer: torch.optim.Optimizer, losses: list[torch.Tensor]) -> Made:
    """Return hashes of losses, weights, moments and random states, each by its name."""
    moments = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    drawn = [torch.rand(4), torch.rand(4, device=place.device)]
    parts = {"losses": losses, "weights": [*model.state_dict().values()], "moments": moments, "random": drawn}
    return tuple(f"{name} {_hash(tensors)}" for name, tensors in parts.items())


def _hash(tensors: list[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


def plain(place: Place, steps: int) -> Generator[None, None, Made]:
    model, losses = net(place), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for x, y in batches(place, steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def clipped(place: Place, steps: int) -> Generator[None, None, Made]:
    model, losses = net(place), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    for x, y in batches(place, steps, shuffle=True):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def accumulating(place: Place, steps: int) -> Generator[None, None, Made]:
    model, losses = net(place), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for number, (x, y) in enumerate(batches(place, 2 * steps)):
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        losses.append(loss.detach())
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
            yield
    return made(place, model, optimizer, losses)


def scaled(place: Place, steps: int) -> Generator[None, None, Made]:
    """fp16 with a GradScaler; one update is skipped."""
    model, losses = net(place), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler(place.kind)
    for number, (x, y) in enumerate(batches(place, steps)):
        optimizer.zero_grad()
        with torch.autocast(place.kind, torch.float16):
            loss = F.cross_entropy(model(x).float(), y) * (1e38 if number == 5 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def bf16_channels_last(place: Place, steps: int) -> Generator[None, None, Made]:
    model, losses = net(place).to(memory_format=torch.channels_last), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for x, y in batches(place, steps):
        optimizer.zero_grad()
        with torch.autocast(place.kind, torch.bfloat16):
            loss = F.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def pinned(place: Place, steps: int) -> Generator[None, None, Made]:
    place.needs("cuda", what="pinned memory")
    model, losses = net(place), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in batches(place, steps, pin_memory=True, num_workers=1):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def fused(place: Place, steps: int) -> Generator[None, None, Made]:
    place.needs("cuda", "cpu", what="fused optimizer")
    model, losses = net(place), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    for x, y in batches(place, steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        yield
    return made(place, model, optimizer, losses)


def compiled(place: Place, steps: int) -> Generator[None, None, Made]:
    return (yield from _compiled(place, steps, backend="inductor" if place.kind == "cuda" else "aot_eager"))


def compiled_with_graphs(place: Place, steps: int) -> Generator[None, None, Made]:
    place.needs("cuda", what="CUDA graphs")
    return (yield from _compiled(place, steps, mode="reduce-overhead"))


def _compiled(place: Place, steps: int, **options: Any) -> Generator[None, None, Made]:
    place.needs("cuda", "cpu", what="torch.compile")
    model, losses = net(place), []
    model[4].p = 0.0  # random numbers of compiled code depend on the number of its compilations
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    called = torch.compile(model, **options)
    for x, y in batches(place, steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(called(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
        yield
    return made(place, model, optimizer, losses)


def graphed_callable(place: Place, steps: int) -> Generator[None, None, Made]:
    """The forward and backward pass are CUDA graphs, the step is not."""
    place.needs("cuda", what="CUDA graphs")
    model, losses = net(place), []
    model[4].p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    called = torch.cuda.make_graphed_callables(model, (torch.rand(8, 1, 8, 8, device=place.device),))
    for x, y in batches(place, steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(called(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
        yield
    return made(place, model, optimizer, losses)


def graphed_step(place: Place, steps: int) -> Generator[None, None, Made]:
    """The whole step is a CUDA graph, captured after three steps on a side stream, as torch's notes have it."""
    place.needs("cuda", what="CUDA graphs")
    model, losses = net(place), []
    model[4].p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = list(batches(place, steps))
    x, y = (tensor.clone() for tensor in data[0])

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            losses.append(step().detach())
            yield
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for one, other in data:
        x.copy_(one)
        y.copy_(other)
        graph.replay()
        losses.append(loss.detach().clone())
        yield
    return made(place, model, optimizer, losses)


ON_DEVICE: tuple[Program, ...] = (plain, clipped, accumulating, scaled, bf16_channels_last, fused)
"""Programs with equal steps: the operators of each step can be compared."""
ALL: tuple[Program, ...] = (*ON_DEVICE, pinned, compiled, compiled_with_graphs, graphed_callable, graphed_step)


def run(program: Program, place: Place, steps: int, after: Callable[[], None] = lambda: None) -> Made:
    """Run a program to its end; call a function after each step."""
    pausing = program(place, steps)
    while True:
        try:
            next(pausing)
        except StopIteration as end:
            return end.value
        after()
