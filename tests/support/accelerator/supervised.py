"""Checks of supervision: no changed result, waits for the device at sampled steps only, the findings of the CPU."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from accelerator import programs
from accelerator.place import Place, Skipped
from accelerator.programs import Program
from truestep.findings import Outcome
from truestep.supervision import Session

SAMPLED = {0, 1, 2, 3, 10, 20, 50, 51}
STEPS = 24
Step = tuple[int, int]
"""How much the device was given in a step, and how often the host waited."""


def _steps(place: Place, program: Program) -> tuple[list[Step], programs.Made]:
    with place.waits() as waited:
        seen = [(place.given(), waited())]
        made = programs.run(program, place, STEPS, lambda: seen.append((place.given(), waited())))
    return [(b - a, d - c) for (a, c), (b, d) in itertools.pairwise(seen)], made


def _plain(program: Program, place: Place, steps: int) -> programs.Made:
    try:
        return programs.run(program, place, steps)
    except (RuntimeError, ImportError, NotImplementedError) as error:
        raise Skipped(f"the program itself does not run here: {type(error).__name__}: {str(error)[:120]}") from error


def _check_reads(program: Program) -> Callable[[Place], None]:
    def check(place: Place) -> None:
        _plain(program, place, STEPS)  # all one-time memory is allocated
        plain, made = _steps(place, program)
        with Session() as session:
            watched, watched_made = _steps(place, program)
        assert session._scene.errors == []
        assert session.findings == ()
        assert watched_made == made
        differ = {number for number, (one, two) in enumerate(zip(plain, watched, strict=True)) if one != two}
        assert differ, "nothing was read at all"
        skipped = (
            1 if program is programs.scaled else 0
        )  # does not count as a step, and the sampled ones come one batch later
        beyond = differ - SAMPLED - {number + skipped for number in SAMPLED}
        assert not beyond, {number: (plain[number], watched[number]) for number in beyond}

    check.__name__ = f"no_read_between_sampled_steps_of_{program.__name__}"
    return check


def _check_invisible(program: Program) -> Callable[[Place], None]:
    def check(place: Place) -> None:
        if program.__name__.startswith("compiled"):
            torch._dynamo.reset()
        first = _plain(program, place, 12)
        if first != _plain(program, place, 12):
            raise Skipped("the program itself gives other bits when it runs again")
        if program.__name__.startswith("compiled"):
            torch._dynamo.reset()
        with Session() as session:
            watched = programs.run(program, place, 12)
        assert session._scene.errors == []
        assert watched == first
        assert session.findings == ()

    check.__name__ = f"supervision_changes_nothing_of_{program.__name__}"
    return check


def what_is_captured_in_a_graph_is_not_called_clear(place: Place) -> None:
    with Session() as session:
        _plain(programs.graphed_step, place, 12)
    assert session._scene.errors == []
    assert session.findings == ()
    reasons = {verdict.reason for verdict in session.verdicts.values()}
    assert {verdict.outcome for verdict in session.verdicts.values()} == {Outcome.NOT_OBSERVED}
    assert "a CUDA graph replays the training step" in reasons


def a_graphed_forward_pass_leaves_the_rest_observed(place: Place) -> None:
    with Session() as session:
        _plain(programs.graphed_callable, place, 12)
    assert session._scene.errors == []
    assert session.verdicts["missing-zero-grad"].outcome is Outcome.CLEAR


# --- findings ------------------------------------------------------------------------------------------------------


def _broken(kind: str, place: Place) -> None:
    model = programs.net(place)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    for number, (x, y) in enumerate(programs.batches(place, STEPS)):
        if kind != "missing zero_grad":
            optimizer.zero_grad(set_to_none=kind != "clip before backward")
        if kind == "clip before backward":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if kind == "schedule first":
            schedule.step()
        out = model(x)
        loss = F.cross_entropy(out.softmax(1) if kind == "softmax" else out, y)
        if kind == "not finite" and number == 2:
            loss = loss * float("nan")
        loss.backward()
        optimizer.step()


def the_findings_are_those_of_the_cpu(place: Place) -> None:
    here, there = {}, {}
    for kind in ("missing zero_grad", "clip before backward", "schedule first", "softmax", "not finite"):
        for where, found in ((place, here), (Place(torch.device("cpu")), there)):
            with Session() as session:
                _broken(kind, where)
            assert session._scene.errors == []
            found[kind] = [
                (finding.rule, finding.primary.site and finding.primary.site.line) for finding in session.findings
            ]
    assert all(there.values()), there
    assert here == there


def a_clip_of_zeros_is_read_at_sampled_steps_only(place: Place) -> None:
    with place.waits() as waited, Session():
        model = programs.net(place)
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        seen = []
        for x, y in programs.batches(place, STEPS):
            optimizer.zero_grad(set_to_none=False)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            seen.append(waited())
    assert {number for number in range(1, STEPS) if seen[number] > seen[number - 1]} <= SAMPLED


# --- possible with the stand-in only -------------------------------------------------------------------------------


def waiting_for_the_device_is_no_cost_of_reading(place: Place) -> None:
    """A read that comes first would wait for the program's work: the clock of reading does, before it starts."""
    place.needs("standin", what="queue that can be looked into")
    device = place.module
    device.held_up.clear()
    with Session():
        model = programs.net(place)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in programs.batches(place, 12):
            optimizer.zero_grad()
            device.queued = True
            out = model(x)
            device.queued = True
            loss = F.cross_entropy(out, y)
            device.queued = True
            loss.backward()
            device.queued = True
            optimizer.step()
            device.queued = False
    assert device.held_up
    assert {asked for asked in device.held_up if not asked.startswith("synchronize from")} == set()


def nothing_is_read_while_a_graph_is_captured(place: Place) -> None:
    place.needs("standin", what="captures that can be made up")
    with _capturing(place) as graph, Session() as session:
        model = programs.net(place)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        (x, y), *_ = programs.batches(place, 1)
        for number in range(6):
            if number == 3:
                graph.capture_begin()
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if number == 3:
                graph.capture_end()
                break
    assert session._scene.errors == []
    assert session._scene.blind == "a CUDA graph replays the training step"
    assert session.findings == ()


def a_forward_pass_in_a_graph_is_only_not_seen(place: Place) -> None:
    place.needs("standin", what="captures that can be made up")
    with _capturing(place) as graph, Session() as session:
        model = programs.net(place)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number, (x, y) in enumerate(programs.batches(place, 8)):
            if number == 2:
                graph.capture_begin()
                torch.autograd.grad(model(x).sum(), [*model.parameters()])
                graph.capture_end()
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert session._scene.errors == []
    assert session._scene.blind == ""
    assert session.steps == 8


class _Graph:
    """A graph that captures nothing, by the methods of `CUDAGraph`, which cannot be made without CUDA."""

    def capture_begin(self) -> None:
        torch.cuda.CUDAGraph.capture_begin(self)

    def capture_end(self) -> None:
        torch.cuda.CUDAGraph.capture_end(self)


class _capturing:
    """Gives a graph; in its capture the stand-in refuses all waits, as CUDA does."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __enter__(self) -> Any:
        module = self._place.module
        self._kept = {name: vars(torch.cuda.CUDAGraph)[name] for name in ("capture_begin", "capture_end")}
        torch.cuda.CUDAGraph.capture_begin = lambda graph: setattr(module, "capturing", True)
        torch.cuda.CUDAGraph.capture_end = lambda graph: setattr(module, "capturing", False)
        return _Graph()

    def __exit__(self, *raised: object) -> None:
        for name, method in self._kept.items():
            setattr(torch.cuda.CUDAGraph, name, method)


def an_error_of_the_device_is_the_programs_own(place: Place) -> None:
    place.needs("standin", what="device that fails on request")
    with Session() as session:
        model = programs.net(place)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        try:
            for x, y in programs.batches(place, 8):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                place.module.failing = True
                loss.backward()
                optimizer.step()
                loss.item()
        except torch.AcceleratorError as error:
            told = str(error)
        finally:
            place.module.failing = False
    assert told == "device-side assert"
    assert session._scene.errors == []
    assert session._scene.blind == "the accelerator reported an error"


def memory_that_is_full_ends_close_reading_only(place: Place) -> None:
    place.needs("standin", what="memory that is full on request")
    try:
        with Session() as session:
            model = programs.net(place)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for number, (x, y) in enumerate(programs.batches(place, 16)):
                place.module.full = number >= 10
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
    finally:
        place.module.full = False
    assert session._scene.errors == []
    assert session.steps == 16
    assert "memory was full" in session._scene.sampling.given_up


def nothing_is_kept_alive_on_the_device(place: Place) -> None:
    def held() -> int:
        gc.collect()
        tensors = [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, nn.Parameter)]
        return sum(tensor.device.type == place.kind for tensor in tensors)

    if place.kind == "cpu":
        raise Skipped("the tests of the laws look at the CPU")
    before = held()
    with Session():
        programs.run(programs.clipped, place, 12)
        assert held() <= before


def checks() -> Iterator[Callable[[Place], None]]:
    """Give every check of this module."""
    yield from map(_check_reads, programs.ON_DEVICE)
    yield from map(_check_invisible, programs.ALL)
    yield what_is_captured_in_a_graph_is_not_called_clear
    yield a_graphed_forward_pass_leaves_the_rest_observed
    yield the_findings_are_those_of_the_cpu
    yield a_clip_of_zeros_is_read_at_sampled_steps_only
    yield waiting_for_the_device_is_no_cost_of_reading
    yield nothing_is_read_while_a_graph_is_captured
    yield a_forward_pass_in_a_graph_is_only_not_seen
    yield an_error_of_the_device_is_the_programs_own
    yield memory_that_is_full_ends_close_reading_only
    yield nothing_is_kept_alive_on_the_device
