"""The course of a run: its first steps, a typical one, the values read, counts by line; always of bounded size."""

import pytest

from truestep import events as ev
from truestep import findings
from truestep.events import Site
from truestep.supervision.children import with_children
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.judge import Judge
from truestep.supervision.record import Recorder, read
from truestep.supervision.stream import EventStream, Logs
from truestep.timeline import Curve, Timeline

STEP = ev.OptimizerStepped(optimizer=1, site=Site("train.py", 9, 4, 9, 20))
CLEARED = ev.GradientsZeroed(optimizer=1, site=Site("train.py", 6, 4, 6, 20))
BACKWARD = Site("train.py", 8, 4, 8, 19)
BUILT = ev.OptimizerBuilt(optimizer=1, name="optimizer", kind="SGD", site=Site("train.py", 3))


def driven(log, steps, loss=lambda step: None):
    stream = EventStream(Judge([]), log)
    stream.take(BUILT)
    for step in range(steps):
        stream.take(CLEARED)
        value = loss(step)
        if value is not None:
            stream.take(ev.LossRead(value=value, site=BACKWARD))
        stream.step(STEP)
    stream.close()
    stream.settle()
    return stream


def test_repeated_steps_count():
    timeline = Timeline()
    driven(timeline, 100)
    assert timeline.step == 100
    assert timeline.counts() == {("GradientsZeroed", CLEARED.site, "optimizer"): 100}
    (typical,) = timeline.typical()
    assert typical.events == (CLEARED, STEP)
    assert 95 <= typical.times < 100
    assert [passage.step for passage in timeline.opening][:3] == [0, 1, 2]


def test_values_have_the_steps_at_which_they_were_read():
    timeline = Timeline()
    driven(timeline, 300, lambda step: 1.0 / (step + 1) if step % 100 == 0 else None)
    assert timeline.curves == {Curve("loss", 0, BACKWARD): [(0, 1.0), (100, 1 / 101), (200, 1 / 201)]}


def test_a_value_for_each_step_is_thinned():
    timeline = Timeline()
    driven(timeline, 10_000, float)
    (points,) = timeline.curves.values()
    assert 500 < len(points) < 2048
    assert all(step == value for step, value in points)
    assert points[0] == (0, 0.0)
    assert points[-1][0] > 9900
    assert timeline.counts()["GradientsZeroed", CLEARED.site, "optimizer"] == 10_000


def test_counts_survive_a_restart_of_the_numbers():
    timeline = Timeline()
    driven(timeline, 100)
    timeline.forget()
    assert [one.times > 90 for one in timeline.typical()] == [True]
    for _ in range(3):
        timeline.show(1, (CLEARED, STEP), (0, 1))
    assert timeline.counts()["GradientsZeroed", CLEARED.site, "optimizer"] == 103
    assert timeline.step == 103


def test_the_round_of_several_optimizers_is_typical():
    timeline = Timeline()
    stream = EventStream(Judge([]), timeline)
    stream.take(BUILT)
    steps = [ev.OptimizerStepped(optimizer=number, site=Site("train.py", 9 + number)) for number in (1, 2, 3)]
    for _ in range(50):
        for step in steps:
            stream.step(step)
    stream.settle()
    typical = timeline.typical()
    assert [passage.events for passage in typical] == [(step,) for step in steps]
    assert {passage.times for passage in typical} == {49, 50}


def test_no_step_is_typical_of_a_run_without_repetition():
    timeline = Timeline()
    driven(timeline, 30, float)
    assert timeline.typical() == []


def test_a_loss_that_is_not_finite_is_marked():
    timeline = Timeline()
    driven(timeline, 5)
    timeline.show(9, (ev.LossNotFinite(site=BACKWARD, value="nan"), STEP), (1, 9))
    assert timeline.marks == [(5, BACKWARD, "nan")]


@pytest.mark.parametrize("steps", [1, 7, 400])
def test_a_record_gives_the_timeline_of_the_run(tmp_path, steps):
    live = Timeline()
    recorder = Recorder(tmp_path, ev.RunStarted(script="train.py"))
    driven(Logs(recorder, live), steps, lambda step: float(step) if step % 50 == 0 else None)
    recorder.close("finished", [])
    replayed = read(tmp_path).timeline
    assert replayed.step == live.step == steps
    assert replayed.counts() == live.counts()
    assert replayed.curves == live.curves
    assert [passage.step for passage in replayed.opening] == [passage.step for passage in live.opening]
    assert replayed.read_at == (tmp_path / "rank-0.jsonl").stat().st_mtime


def test_a_timeline_stays_in_its_process():
    summary = findings.Summary("train.py", "finished", 3, timeline=Timeline())
    assert from_dict(to_dict(summary)).timeline is None
    assert from_dict(to_dict(summary)) == summary


@pytest.mark.parametrize(("steps", "leads"), [(0, 1), (4, 0)])
def test_the_timeline_is_that_of_the_process_that_trains(steps, leads):
    timelines = Timeline(), Timeline()
    own = findings.Summary(
        "train.py", "finished", steps, coverage=findings.Coverage(backward=steps > 0), timeline=timelines[0]
    )
    child = findings.Summary("train.py", "finished", 9, timeline=timelines[1])
    assert with_children(own, [(None, child)]).timeline is timelines[leads]
