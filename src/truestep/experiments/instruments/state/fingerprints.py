"""Record checksums of all state that a resumed run must restore, at every step of a script."""

from __future__ import annotations

import json
import os
import random
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.experiments.instruments.given import GivenLosses
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.state import digests
from truestep.experiments.instruments.state.objects import Objects
from truestep.experiments.running.inside.state_writes import watch_reads, watch_writes
from truestep.seams.patch import patch

_NO_SETTINGS = ("params", "param_names", "lr", "initial_lr")
_MOST_BATCHES = 64
"""Largest number of batches per line: the last ones since the previous step."""


class Fingerprints(Instrument):
    """Writes one line per step of an optimizer, and per write of a file of state, to `prints.jsonl`.

    A line of a step holds the state before it (weights, optimizer, schedules, scalers, buffers, copies, random states),
    the batches drawn since the last step with gradients enabled, the loss, and the weights after it. Buffers are read
    when the last of these batches is drawn. Each line is passed to the system at once: a kill loses none. Reading
    waits for the device.
    """

    name = "fingerprints"

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__(folder, script)
        self._file = os.open(folder / "prints.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._objects = Objects()
        self._line: dict[str, Any] = {}
        self._batches: list[tuple[int, int, int]] = []
        self._indices: weakref.WeakKeyDictionary[Any, deque[int]] = weakref.WeakKeyDictionary()
        self._buffers: dict[str, Any] | None = None
        self._given = GivenLosses()
        self._put_back: set[str] = set()
        self._looks = 0
        self._steps = 0
        self._reads = 0

    def install(self, stack: ExitStack) -> None:
        self._given.listen(stack)
        self._watch_batches(stack)
        self._watch_put_back(stack)
        watch_writes(stack, self._written)
        watch_reads(stack, self._read)
        seams.step.watch(stack, before=self._begins, after=self._ended)

    def _watch_batches(self, stack: ExitStack) -> None:
        import torch

        from truestep.loop.loading import feed as feed_module
        from truestep.loop.loading.loader import Loader

        def __next__(iterator: Any) -> Any:
            batch = next_of_torch(iterator)
            waiting = self._indices.get(iterator)
            indices = waiting.popleft() if waiting else 0
            if enabled() and type(iterator._dataset).__module__ != feed:
                self._drawn(batch, iterator._num_yielded, indices)
            return batch

        def _next_index(iterator: Any) -> Any:  # workers are asked for batches before these are given, in their order
            indices = next_index_of_torch(iterator)
            known = isinstance(indices, list) and None not in indices
            self._indices.setdefault(iterator, deque()).append(digests.of(indices) if known else 0)
            return indices

        def _reset(iterator: Any, *args: Any, **kwargs: Any) -> Any:  # workers that persist begin another pass
            self._indices.pop(iterator, None)
            return reset_of_torch(iterator, *args, **kwargs)

        def epoch(loader: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            start = kwargs.get("start", args[1] if len(args) > 1 else 0)
            batches = epoch_of_loader(loader, *args, **kwargs)

            def walk() -> Iterator[Any]:
                for number, batch in enumerate(batches, start + 1):
                    if enabled():
                        self._drawn(batch, number, 0)
                    yield batch

            return walk()

        feed, enabled = feed_module.__name__, torch.is_grad_enabled
        next_of_torch = seams.loader.wrap_next(stack, __next__)
        next_index_of_torch = seams.loader.wrap_iterator(stack, "_next_index", _next_index)
        reset_of_torch = seams.loader.wrap_iterator(stack, "_reset", _reset)
        epoch_of_loader = patch(stack, Loader, "epoch", epoch)

    def _watch_put_back(self, stack: ExitStack) -> None:
        import torch

        def reporting(name: str, put: Any) -> Any:
            def put_back(*args: Any, **kwargs: Any) -> Any:
                if torch._C._current_graph_task_id() == -1:  # activation checkpointing restores random states too
                    self._put_back.add(name)
                return put(*args, **kwargs)

            return put_back

        patch(stack, torch.random, "set_rng_state", reporting("torch", torch.random.set_rng_state))
        patch(stack, torch, "set_rng_state", torch.random.set_rng_state)
        patch(stack, random, "setstate", reporting("python", random.setstate))
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            patch(stack, numpy.random, "set_state", reporting("numpy", numpy.random.set_state))

    def _drawn(self, batch: Any, position: int, indices: int) -> None:
        self._look()
        self._batches.append((digests.of(batch), position, indices))
        del self._batches[:-_MOST_BATCHES]
        self._buffers = self._objects.buffers()

    def _look(self) -> None:
        """Search for modules at the steps 0, 1, 3, 7, 15, ...: most exist before the first one."""
        if self._steps + 1 >= 2**self._looks:
            self._looks += 1
            self._objects.look()

    def _begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._line:  # a step inside a step: one update
            self._line["depth"] += 1
            return
        self._look()
        groups, parameters = optimizer.param_groups, _parameters(optimizer)
        self._line = {
            "depth": 1,
            "optimizer": f"{type(optimizer).__name__} {digests.of([str(tuple(p.shape)) for p in parameters]):08x}",
            "weights": digests.of_weights(parameters),
            "sample": digests.some_of(parameters),
            "state": _state(optimizer, parameters),
            "rates": [float(group["lr"]) for group in groups if "lr" in group],
            "settings": [
                {name: _setting(value) for name, value in group.items() if name not in _NO_SETTINGS} for group in groups
            ],
            "schedules": self._objects.schedules(),
            "scalers": self._objects.scalers(),
            "buffers": self._objects.buffers() if self._buffers is None else self._buffers,
            "untrained": self._objects.untrained(),
            "random": digests.of_random_states(),
            "put_back": sorted(self._put_back),
            "batches": self._batches,
            "reads": self._reads,
        }
        if not self._steps:
            self._line["names"] = self._objects.names(parameters)
        self._batches, self._buffers = [], None

    def _ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        line = self._line
        line["depth"] -= 1
        if line["depth"]:
            return
        del line["depth"]
        parameters = _parameters(optimizer)
        losses = self._given.take()
        line["loss"] = sum(losses) / len(losses) if losses else None
        line["after"] = digests.of_weights(parameters)
        line["sample_after"] = digests.some_of(parameters)
        self._line = {}
        self._steps += 1
        self._write({"step": line})

    def _written(self, kind: str, path: str, tear: Any) -> None:
        self._write({"write": {"kind": kind, "path": path}})

    def _read(self) -> None:
        self._reads += 1

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())


def _setting(value: Any) -> str:
    """Return a setting as text; if its text contains an address, the type alone, which is equal in every process."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text[:200]


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _state(optimizer: Any, parameters: list[Any]) -> dict[str, int]:
    """Return checksums of the state of an optimizer by key, over all parameters in their order."""
    keys: dict[str, list[int]] = {}
    for number, parameter in enumerate(parameters):
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                keys.setdefault(str(key), []).extend((number, digests.of(value)))
    return {key: digests.of(numbers) for key, numbers in sorted(keys.items())}
