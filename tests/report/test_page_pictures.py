"""Charts of schedules, time and memory, units without a gradient, and losses at chance."""

import json
import math

import pytest
from lived import PATH, SCHEDULED, at, lived

from truestep import events as ev
from truestep.errors import UsageError
from truestep.findings import Summary
from truestep.report.page.annotated import annotated, timed
from truestep.report.page.line_times import line_times, read_times
from truestep.report.page.pictures.alerts import alerts
from truestep.report.page.pictures.asked_schedules import schedule_charts
from truestep.report.page.pictures.heat import heat_maps
from truestep.report.page.pictures.time_and_memory import pace_charts
from truestep.report.page.write_page import render

RATES = {0: 0.1, 20: 0.08, 60: 0.05, 99: 0.02}


def scheduled(horizon, *, steps=100, every=1, **facts):
    """Return a run with a linear schedule down to 0 at its horizon, stepped after each so many updates."""
    positions = tuple(range(0, 2 * horizon + 1, max(1, horizon // 50)))
    built = ev.SchedulerBuilt(
        scheduler=1,
        kind="LinearLR",
        optimizer=1,
        horizon=horizon,
        asked_steps=positions,
        asked_rates=tuple(0.1 * max(0.0, 1 - position / horizon) for position in positions),
        site=at(4),
    )
    read = {step: [ev.LearningRateRead(optimizer=1, rates=(rate,))] for step, rate in RATES.items()}
    read[0] = [built, *facts.pop("first", []), *read[0]]
    for step in range(every, steps, every):
        read.setdefault(step, []).insert(0, SCHEDULED)
    return lived(steps, scheduled=False, read=read, **facts)


def drawn(summary):
    (chart,) = schedule_charts([("", summary)])
    asked = next(line for line in chart.lines if line.dashed)
    return chart, dict(asked.points)


def test_a_schedule_as_long_as_the_run_has_no_mark():
    chart, asked = drawn(scheduled(100))
    assert chart.title == "LinearLR, as asked and as run"
    assert chart.caption == "learning rate of the schedule at train.py:4; the run took 99 of its 100 steps"
    assert [(line.label, line.dots) for line in chart.lines] == [("as run", True), ("as asked", False)]
    assert chart.marks == ()
    assert asked[0] == 0.1
    assert asked[max(asked)] == pytest.approx(0.0, abs=2e-3)


def test_a_schedule_in_updates_that_steps_once_per_pass_goes_far_beyond_the_run():
    chart, asked = drawn(scheduled(50, every=25))  # 3 of 50 steps
    assert chart.marks[0][0] == "end of the run"
    assert chart.steps == max(asked) == 1667
    assert chart.caption.endswith("the run took 3 of its 50 steps, one for 33.3 updates")
    held = [rate for step, rate in asked.items() if step < 33]
    assert set(held) == {0.1}  # a rate holds until the next step of the schedule


def test_a_picture_ends_long_before_a_schedule_that_is_hundreds_of_runs_long():
    chart, asked = drawn(scheduled(10_000, every=25))
    assert chart.steps == max(asked) == 2000
    assert chart.caption.endswith("drawn to 20 lengths of the run")


def test_a_run_with_more_steps_than_its_schedule_says_both_numbers():
    chart, _ = drawn(scheduled(20))
    assert chart.caption.endswith("the run took 99 steps, and it has 20")


def test_a_plan_that_goes_on_in_waves_ends_with_its_schedule():
    rates = (0.1, 0.05, 0.0, 0.05, 0.1)
    waves = ev.SchedulerBuilt(
        scheduler=1, kind="CosineAnnealingLR", optimizer=1, horizon=2, asked_steps=(0, 1, 2, 3, 4), asked_rates=rates
    )
    read = {step: [ev.LearningRateRead(optimizer=1, rates=(rates[step % 4],))] for step in range(8)}
    read[0].insert(0, waves)
    for step in range(1, 8):
        read[step].insert(0, SCHEDULED)
    chart, asked = drawn(lived(8, scheduled=False, read=read))
    assert [text for text, _, _ in chart.marks] == ["end of the schedule"]
    assert max(asked) <= 3
    assert min(asked.values()) == 0.0


def test_a_schedule_that_ends_before_the_run_is_marked():
    chart, asked = drawn(scheduled(10))
    assert [(text, round(share)) for text, share, _ in chart.marks] == [("end of the schedule", 10)]
    assert asked[max(asked)] == 0.0
    assert chart.steps <= 100


def test_schedules_that_are_not_alone_or_not_at_their_start_are_not_drawn():
    other = ev.SchedulerBuilt(scheduler=2, optimizer=1, asked_steps=(0, 9), asked_rates=(0.1, 0.1), site=at(4))
    both = [other, ev.SchedulerStepped(scheduler=2, site=at(42))]
    assert schedule_charts([("", scheduled(100, first=both))]) == []
    assert schedule_charts([("", scheduled(100, first=[ev.ScheduleMoved(scheduler=1)]))]) == []
    assert schedule_charts([("", lived(40))]) == []  # no plan
    assert schedule_charts([("", Summary("train.py", "finished", 3))]) == []


def paced(seconds, resident, device=0):
    steps = (0, 1, 10, 20, 50, 51, 100)
    times = tuple(round(seconds * step, 3) for step in steps)
    read = ev.PaceRead(steps=steps, elapsed_s=times, resident_bytes=(resident,) * 7, device_bytes=(device,) * 7)
    return lived(101, read={100: [read]})


def test_time_per_step_is_a_mean_between_readings_and_memory_is_in_mebibytes():
    time, memory = pace_charts([("", paced(0.2, 300 * 2**20, 2**30))])
    (line,) = time.lines
    assert [step for step, _ in line.points] == [20, 50, 100]
    assert [value for _, value in line.points] == pytest.approx([200.0] * 3)
    assert [(line.label, line.points[0]) for line in memory.lines] == [
        ("process", (0, 300.0)),
        ("accelerator, peak", (0, 1024.0)),
    ]
    assert (time.low, memory.low) == (0.0, 0.0)


def test_runs_share_the_charts_of_time_and_a_short_run_has_none():
    (time,) = pace_charts([("a", paced(0.2, 0)), ("b", paced(0.1, 0))])
    assert [line.label for line in time.lines] == ["a", "b"]
    assert pace_charts([("", lived(40))]) == pace_charts([("", Summary("train.py", "finished", 3))]) == []


def test_units_without_a_gradient_are_a_table_of_shares_if_there_are_any():
    def run(*shares):
        read = {
            step: [ev.LayersMeasured(optimizer=1, parameters=(1,), gradients=(0.1,), updates=(0.1,), idle=(share,))]
            for step, share in enumerate(shares)
        }
        return heat_maps(lived(40, read=read))

    *_, units = run(0.0, 0.25, 1.0)
    assert (units.title, units.low, units.high) == ("Units without a gradient", "0 %", "100 %")
    assert [(cell.shade, cell.text) for cell in units.rows[0].cells] == [(0, "0%"), (25, "25%"), (100, "100%")]
    assert [one.title for one in run(0.0, 0.0)] == ["Gradients", "Updates"]


def test_a_loss_that_stays_at_chance_is_an_alert():
    def run(late, steps=200):
        return alerts([("", lived(steps, losses=[(0, 2.4), *((step, late) for step in (50, 100, 150))]))])

    assert run(math.log(10)) == (
        "loss at chance: the loss of train.py:38 is 2.3 after the first tenth of the run, and 2.3 for a guess among "
        "the classes",
    )
    assert run(2.0) == run(math.log(10), steps=80) == ()


ROWS = [
    {"path": PATH, "line": 38, "phase": "backward", "ms": 6.0, "share": 0.6},
    {"path": PATH, "line": 38, "phase": "other", "ms": 0.5, "share": 0.05},
    {"path": PATH, "line": 35, "phase": "data", "ms": 0.004, "share": 0.0004},
]


def test_the_time_of_a_line_is_beside_its_operations():
    times = line_times(ROWS)
    (one,) = times.values()
    assert (one.text, one.percent) == ("6.5 ms a step, 65 % (backward, other)", 65.0)
    (file, *_) = annotated(lived(40), times)
    lines = {line.number: line for part in file.stretches for line in part.lines}
    assert lines[38].time is one
    assert lines[37].time is None
    assert "6.5 ms a step" in render([lived(40)], times=times)
    (alone,) = timed(times)
    assert [line.number for part in alone.stretches for line in part.lines if line.busy] == [38]


def test_a_file_that_is_no_profile_is_refused(tmp_path):
    file = tmp_path / "profile.json"
    with pytest.raises(UsageError, match="is not a profile"):
        read_times(file)
    for text in ("no JSON", "[]", '{"lines": [{"path": "a.py"}]}', '{"line": []}'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="is not a profile"):
            read_times(file)
    file.write_text(json.dumps({"lines": ROWS}), encoding="utf-8")
    assert read_times(file) == line_times(ROWS)
