"""Loops over several loaders, cut off at every place and resumed: each ends as the one that was not cut off.

A program is a function of a run, its loaders `main` (5 batches) and `side`, and a function `used`, which trains on
batches and may cut the program off.
"""

import itertools
import os
import warnings
from contextlib import suppress

import pytest
import torch
from tiers import few
from torch import nn

from truestep import Run
from truestep.errors import InexactResume


class Cut(Exception):
    """The program was cut off."""


@pytest.fixture(autouse=True)
def files_stay_in_memory(monkeypatch):
    """Do not wait for the disk: no machine is stopped here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def endless(run, loader):
    while True:
        yield from run.train(loader)


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def made_in_each_epoch(run, main, side, used):
    for _ in run.epochs():
        others = iter(run.train(side))
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def made_in_each_epoch_and_kept(run, main, side, used):
    kept = []
    for _ in run.epochs():
        kept.append(iter(run.train(side)))
        for x in run.train(main):
            used(x, next(kept[-1]))
        run.save()


@program
def generators_made_in_each_epoch(run, main, side, used):
    for _ in run.epochs():
        others = endless(run, side)
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def zipped_with_what_each_epoch_makes(run, main, side, used):
    for _ in run.epochs():
        others = endless(run, side)
        for x, y in zip(run.train(main), others, strict=False):
            used(x, y)
        run.save()


@program
def made_early_and_used_late(run, main, side, used):
    for _ in run.epochs():
        others = iter(run.train(side))
        for x in run.train(main):
            used(x, *([next(others)] if (run.global_step + 1) % 5 >= 3 else []))


@program
def made_where_first_used(run, main, side, used):
    for _ in run.epochs():
        others = None
        for x in run.train(main):
            if run.global_step % 5 == 2:
                others = others or iter(run.train(side))
                used(x, next(others))
            else:
                used(x)


@program
def made_once_where_first_used(run, main, side, used):
    others = None
    for _ in run.epochs():
        for x in run.train(main):
            if run.global_step % 3 == 2:
                if others is None:
                    others = endless(run, side)
                used(x, next(others))
            else:
                used(x)
        run.save()


@program
def made_before_the_epochs(run, main, side, used):
    others = iter(run.train(side))
    for _ in run.epochs():
        for x in run.train(main):
            if run.global_step % 4 == 1:
                try:
                    other = next(others)
                except StopIteration:
                    others = iter(run.train(side))
                    other = next(others)
                used(x, other)
            else:
                used(x)
        run.save()


@program
def a_generator_that_all_epochs_share(run, main, side, used):
    others = endless(run, side)
    for _ in run.epochs():
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def two_generators_over_one_loader(run, main, side, used):
    first, second = endless(run, side), endless(run, side)
    for _ in run.epochs():
        for x in run.train(main):
            used(x, next(second), next(first))


@program
def three_iterators_of_which_one_is_the_main_loader_again(run, main, side, used):
    for _ in run.epochs():
        again, others = iter(run.train(main)), iter(run.train(side))
        for x in run.train(main):
            used(x, next(others), next(again))
        run.save()


@program
def one_that_is_dropped_unused(run, main, side, used):
    for _ in run.epochs():
        run.train(side)
        others = iter(run.train(side))
        for x in run.train(main):
            used(x, next(others))
        del others
        run.save()


@program
def one_that_a_generator_of_the_program_wraps(run, main, side, used):
    def doubled(batches):
        for batch in batches:
            yield 2 * batch

    for _ in run.epochs():
        others = doubled(run.train(side))
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def loops_that_are_left_beside_a_generator(run, main, side, used):
    others = endless(run, side)
    for _ in run.epochs():
        for x in endless(run, main):
            used(x, next(others))
            if run.global_step % 7 == 0:
                break
        run.save()


@program
def epochs_that_now_go_on_and_now_begin_again(run, main, side, used):
    others = None
    for epoch in run.epochs():
        if epoch != 1 or others is None:
            others = endless(run, side)
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def two_loops_in_an_epoch(run, main, side, used):
    for _ in run.epochs():
        others = endless(run, side)
        for x in run.train(main):
            used(x, next(others))
        for x in run.train(main):
            used(x, next(others))
        run.save()


@program
def a_batch_by_hand_before_the_loop(run, main, side, used):
    for _ in run.epochs():
        others = endless(run, side)
        first = next(others)
        for x in run.train(main):
            used(x, first, next(others))
        run.save()


@program
def two_loops_over_pairs(run, main, side, used):
    others = endless(run, side)
    for _ in run.epochs():
        for x, y in zip(run.train(main), others, strict=False):
            used(x, y)
        for x, y in zip(run.train(main), others, strict=False):
            used(x, y)
            if run.global_step % 8 == 0:
                break
        run.save()


def played(written, out, cuts_at, **settings):
    """Return the weights, the log and how often the program could be cut off."""
    quiet = {"watch": False, "progress": False, "alerts": False}
    run = Run(out=out, seed=1, device="cpu", resume="auto", max_epochs=4, **quiet, **settings)
    model = run.model(nn.Linear(1, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=1e-8))
    main = run.loader(torch.arange(10.0).reshape(-1, 1), batch_size=2, shuffle=True, name="main")
    side = run.loader(torch.arange(100.0, 114.0).reshape(-1, 1), batch_size=2, shuffle=True, name="side")
    places = itertools.count(1)

    def cut():
        if next(places) == cuts_at:
            raise Cut

    def used(*batches):
        cut()
        run.step(sum(model(batch).square().mean() for batch in batches))
        run.log({f"batch-{number}": batch.sum() for number, batch in enumerate(batches)})
        cut()

    with run:
        written(run, main, side, used)
    return [value.tolist() for value in model.parameters()], (out / "metrics.jsonl").read_text(), next(places) - 1


def cut_everywhere(written, tmp_path, places, settings):
    """Return the number of places with a warning that the program may not go on exactly; at the others it does."""
    *whole, count = played(written, tmp_path / "whole", 0, **settings)
    assert count >= 30
    told = 0
    for place in places(count):
        out = tmp_path / f"cut-{place}"
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with pytest.raises(Cut):
                played(written, out, place, **settings)
            for again in (1 + place % 9, 2 + place % 5):
                with suppress(Cut):
                    played(written, out, again, **settings)
            ours = played(written, out, 0, **settings)[:2]
        assert {warning.category for warning in seen} <= {InexactResume}, [str(warning.message) for warning in seen]
        assert seen or ours == tuple(whole), f"cut at {place} of {count}"
        told += bool(seen)
    return told


@pytest.mark.parametrize("written", few(3, PROGRAMS), ids=lambda written: written.__name__)
def test_loops_over_several_loaders_go_on_where_they_were_cut_off(written, tmp_path):
    assert cut_everywhere(written, tmp_path, lambda count: [23], {"save_every_n_steps": 2}) == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"save_every_n_steps": 2}, {"save_every_n_steps": 1}, {}], ids=str)
@pytest.mark.parametrize("written", PROGRAMS, ids=lambda written: written.__name__)
def test_loops_over_several_loaders_go_on_wherever_they_were_cut_off(written, settings, tmp_path):
    told = cut_everywhere(written, tmp_path, lambda count: range(2, count + 1, 3), settings)
    assert told <= 4
