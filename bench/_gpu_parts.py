"""The parts of `gpu.py`, each run as a process: `python -m _gpu_parts NAME DEVICE SECONDS QUICK FILE`."""

from __future__ import annotations

import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from accelerator.place import Place, place
from torch import nn

from truestep import Run
from truestep.loop.loading.loader import Loader
from truestep.loop.log.flops import peak_flops

Row = dict[str, Any]
Loop = Callable[[int], None]


class Timing:
    """Times loops on a device in turns.

    Args:
        where: the device.
        until: end of the rounds, in `time.monotonic` seconds.
        quick: whether a round has few steps, and there are few rounds.
    """

    def __init__(self, where: Place, until: float, *, quick: bool) -> None:
        self.where = where
        self.until = until
        self.quick = quick

    def ms(self, loop: Loop, steps: int) -> float:
        """Return the milliseconds of a step, the device's work included."""
        self.where.settle()
        begun = time.perf_counter()
        loop(steps)
        self.where.settle()
        return (time.perf_counter() - begun) / steps * 1e3

    def block(self, loop: Loop, seconds: float = 0.3) -> int:
        """Return the number of steps of a loop that take this long."""
        loop(2)
        return 2 if self.quick else max(5, int(seconds * 1e3 / self.ms(loop, 5)))

    def turns(self, loops: dict[str, Loop], steps: int, until: float) -> dict[str, list[float]]:
        """Return the milliseconds of a step of each loop, by round; every round starts with another loop."""
        times: dict[str, list[float]] = {name: [] for name in loops}
        names = list(loops)
        for turn in range(2 if self.quick else 30):
            for name in (*names[turn % len(names) :], *names[: turn % len(names)]):
                times[name].append(self.ms(loops[name], steps))
            if turn and time.monotonic() > until:
                break
        return times


def compared(times: dict[str, list[float]], base: str) -> Iterator[Row]:
    """Yield one row for each loop: its time, and the median over rounds of its ratio to the base."""
    for name, own in times.items():
        ratios = [one / other for one, other in zip(own, times[base], strict=True)]
        yield {
            "loop": name,
            "step_ms": round(statistics.median(own), 4),
            "ratio": round(statistics.median(ratios), 4),
            "rounds": len(own),
        }


def machine(where: Place) -> Row:
    """Return a description of the machine."""
    gpu = torch.cuda.get_device_properties(0) if where.kind == "cuda" else None
    return {
        "machine": platform.processor() if gpu is None else gpu.name,
        "memory_gib": None if gpu is None else round(gpu.total_memory / 2**30, 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def checks(timing: Timing) -> Iterator[Row]:
    """Run every check of `tests/support/accelerator`."""
    from accelerator.running import results

    yield from results(timing.where, until=timing.until)


# --- the cost of supervision ---------------------------------------------------------------------------------------


def _mlp(where: Place, width: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
    x, y = torch.randn(256, width, device=where.device), torch.randint(0, 10, (256,), device=where.device)
    return nn.Sequential(*layers).to(where.device), x, y


def _conv(where: Place, width: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    def block(inputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]

    layers = [*block(3), *block(width), *block(width), nn.AvgPool2d(32), nn.Flatten(), nn.Linear(width, 10)]
    x, y = torch.randn(64, 3, 32, 32, device=where.device), torch.randint(0, 10, (64,), device=where.device)
    return nn.Sequential(*layers).to(where.device), x, y


def _loop(where: Place, model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, half: bool) -> Loop:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(where.kind, enabled=half)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(where.kind, torch.float16, enabled=half):
                out = model(x)
            loss = nn.functional.cross_entropy(out.float(), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return steps


def step(timing: Timing) -> Iterator[Row]:
    """Compare plain steps with supervised ones, past the steps that are read closely."""
    from step_cost import Supervision

    where, quick = timing.where, timing.quick
    torch.use_deterministic_algorithms(False)
    programs = {
        "MLP": lambda: _loop(where, *_mlp(where, 32 if quick else 1024), half=False),
        "MLP, fp16 with a scaler": lambda: _loop(where, *_mlp(where, 32 if quick else 1024), half=True),
        "convolutions": lambda: _loop(where, *_conv(where, 4 if quick else 64), half=False),
    }
    share = (timing.until - time.monotonic()) / len(programs)
    for number, (name, build) in enumerate(programs.items(), 1):
        torch.manual_seed(0)
        loop, supervision = build(), Supervision()
        loop(10)
        with supervision:
            loop(10 if quick else 80)
        scene = supervision.scene
        scene.sampling.step = 1001  # past the steps that are read closely, without another one to come
        scene.sampling.given_up, scene.sampling.on = "timing", False
        scene.ledger.refresh()

        def supervised(count: int, loop: Loop = loop, supervision: Any = supervision) -> None:
            with supervision:
                loop(count)

        supervised(10 if quick else 100)
        until = timing.until - share * (len(programs) - number)
        times = timing.turns({"plain": loop, "supervised": supervised}, timing.block(loop), until)
        errors = [*scene.errors, *supervision.judge.errors]
        yield {
            "program": name,
            **list(compared(times, "plain"))[1],
            "plain_ms": round(statistics.median(times["plain"]), 4),
        }
        if errors:
            raise RuntimeError(errors[0])


# --- the toolkit ---------------------------------------------------------------------------------------------------


def toolkit(timing: Timing) -> Iterator[Row]:
    """Compare a step of the toolkit with the loop by hand, with clipping and a schedule on both sides."""
    where = timing.where
    torch.use_deterministic_algorithms(False)
    model, x, y = _mlp(where, 32 if timing.quick else 512)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)

    def by_hand(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    options: Row = {"device": where.kind, "precision": "fp32", "clip_norm": 1.0, "watch": False, "progress": False}
    with tempfile.TemporaryDirectory() as folder, Run(out=Path(folder) / "run", **options) as run:
        ours = run.model(_mlp(where, 32 if timing.quick else 512)[0])
        own = run.optimizer(torch.optim.AdamW(ours.parameters(), lr=1e-4))
        run.scheduler(torch.optim.lr_scheduler.LambdaLR(own, lambda step: 1.0), every="step")
        walk = iter(run.steps(10**9, ours))

        def with_run(count: int) -> None:
            for _ in range(count):
                next(walk)
                with run.autocast():
                    loss = nn.functional.cross_entropy(ours(x), y)
                run.step(loss)
                run.log({"loss": loss})

        times = timing.turns({"by hand": by_hand, "Run": with_run}, timing.block(by_hand), timing.until)
    yield from compared(times, "by hand")


def loader(timing: Timing) -> Iterator[Row]:
    """Compare batches of data in memory: moved to the device once, or drawn by a DataLoader from pinned memory."""
    from torch.utils.data import DataLoader, TensorDataset

    where = timing.where
    samples = 512 if timing.quick else 60_000
    data = TensorDataset(torch.randn(samples, 784), torch.randint(0, 10, (samples,)))
    ours = Loader(data, batch_size=256, shuffle=True, device=where.device)
    pinned = DataLoader(data, 256, shuffle=True, pin_memory=where.kind == "cuda")
    x, y = (tensor.to(where.device) for tensor in data.tensors)

    def indexing(count: int) -> None:
        for _ in range(count):
            for part in torch.randperm(samples, device=where.device).split(256):
                _ = x[part], y[part]

    def toolkit_loader(count: int) -> None:
        for epoch in range(count):
            for batch in ours.epoch(epoch):
                _ = [field.to(where.device, non_blocking=True) for field in batch]

    def torch_loader(count: int) -> None:
        for _ in range(count):
            for batch in pinned:
                _ = [field.to(where.device, non_blocking=True) for field in batch]

    loops = {"indexing on the device": indexing, "Loader": toolkit_loader, "DataLoader, pinned": torch_loader}
    for one in loops.values():
        one(1)
    for row in compared(timing.turns(loops, 1, timing.until), "indexing on the device"):
        yield {("epoch_ms" if key == "step_ms" else key): value for key, value in row.items()}


# --- GPT-2 ---------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = (
            self.attend(self.before(x)).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        mixed = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(nn.functional.gelu(self.widen(self.between(x)), approximate="tanh"))


class GPT(nn.Module):
    """GPT-2 by its published sizes; the head is tied to the embedding."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(timing: Timing) -> Iterator[Row]:
    """Train GPT-2 of 124 million parameters in bf16: by hand, supervised, and with the toolkit."""
    from step_cost import Supervision

    where, quick = timing.where, timing.quick
    torch.use_deterministic_algorithms(False)
    torch.manual_seed(0)
    rows, length = (2, 16) if quick else (16, 1024)
    sizes = (64, 16, 16, 2, 2) if quick else (50_304, 1024, 768, 12, 12)
    model = GPT(*sizes).to(where.device)
    tokens = torch.randint(0, sizes[0], (rows, length + 1), device=where.device)
    x, y = tokens[:, :-1], tokens[:, 1:].reshape(-1)
    fused = where.kind == "cuda"

    def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused or None)

    optimizer = optimizer_of(model)

    def by_hand(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(where.kind, torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y)
            loss.backward()
            optimizer.step()

    by_hand(2)
    block = timing.block(by_hand, 1.0)
    supervision = Supervision()

    def supervised(count: int) -> None:
        with supervision:
            by_hand(count)

    supervised(2 if quick else 12)
    with Run(device=where.kind, precision="bf16", watch=False, progress=False) as run:
        own = run.optimizer(optimizer_of(run.model(model)))
        walk = iter(run.steps(10**9, model))

        def with_run(count: int) -> None:
            for _ in range(count):
                next(walk)
                with run.autocast():
                    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y)
                run.step(loss, optimizer=own)

        with_run(1)
        loops = {"by hand": by_hand, "supervised": supervised, "Run": with_run}
        times = timing.turns(loops, block, timing.until)
    if supervision.scene.errors:
        raise RuntimeError(supervision.scene.errors[0])
    parameters = sum(weight.numel() for weight in model.parameters())
    per_token = 6 * parameters + 12 * sizes[4] * sizes[2] * length  # PaLM, appendix B
    peak = peak_flops(where.device, "bf16")
    for row in compared(times, "by hand"):
        speed = rows * length / row["step_ms"] * 1e3
        mfu = None if peak is None else round(speed * per_token / peak, 4)
        yield {**row, "tokens_per_s": round(speed), "mfu": mfu, "parameters": parameters}


PARTS = {part.__name__: part for part in (checks, step, toolkit, loader, gpt)}


def main() -> None:
    name, kind, seconds, quick, out = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    where = place(kind)
    with Path(out).open("w", encoding="utf-8") as file:
        if name != "checks":
            file.write(json.dumps(machine(where)) + "\n")
        for row in PARTS[name](Timing(where, until, quick=quick == "1")):
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
