"""Answers of experiments: exit codes as the documentation has them, and no line that a terminal of 80 columns cuts."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from truestep.cli import overfit as overfit_command
from truestep.cli import prove as prove_command
from truestep.cli import verify_resume as resume_command
from truestep.cli.experimenting import compare as compare_command
from truestep.cli.experimenting import repeat as repeat_command
from truestep.cli.experimenting.stopping import Exit
from truestep.errors import NoExperiment, TrueStepError
from truestep.experiments.changes.speedups import SPEEDUPS
from truestep.experiments.figures.figure import Figure, FigureVerdict
from truestep.experiments.figures.speedup_statistics import Judged, SpeedVerdict
from truestep.experiments.overfit import causes
from truestep.experiments.overfit.overfit import LearningVerdict, Overfit, _check, judge
from truestep.experiments.prove.prove import LOSS, ProofAnswer, RemedyProof
from truestep.experiments.reports import overfit as overfit_report
from truestep.experiments.reports import prove as prove_report
from truestep.experiments.reports import resume as resume_report
from truestep.experiments.reports import tune as tune_report
from truestep.experiments.resume.kills import Kill
from truestep.experiments.resume.missing import Missing
from truestep.experiments.resume.pieces import PIECES
from truestep.experiments.resume.resume import Resume
from truestep.experiments.resume.trial import KillTrial, ResumeVerdict
from truestep.experiments.running import absent
from truestep.experiments.running.outcome import RunOutcome, Step, Variant
from truestep.experiments.tune.tuned import SpeedupRow, Tuned
from truestep.report.error_text import of_experiment
from truestep.rules import all_rules

DOCS = Path(__file__).parents[2] / "docs" / "reference"
PLAIN = Variant("as it is")


def rows(name):
    """Return the exit code of each answer of a command, as the documentation has it."""
    text = (DOCS / "experiments.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
    cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
    return {answer: code for code, cell in zip((0, 1, 3), cells, strict=True) for answer in cell.split(", ") if answer}


@pytest.mark.parametrize(
    ("name", "codes", "also"),
    [
        ("overfit", overfit_command.CODES, {"cannot tell"}),
        ("prove", prove_command.CODES, set()),
        ("verify-resume", resume_command.CODES, set()),
        ("compare", compare_command.CODES, set()),
        ("repeat", repeat_command.CODES, {"cannot be judged"}),
    ],
)
def test_the_documentation_has_the_exit_code_of_every_answer(name, codes, also):
    documented = rows(name)
    assert {answer: documented[answer] for answer in documented if answer not in also} == {
        str(answer): int(code) for answer, code in codes.items()
    }
    assert all(documented[answer] == NoExperiment.exit_code for answer in also)


def test_codes_of_errors_are_those_of_the_table():
    assert (TrueStepError.exit_code, NoExperiment.exit_code) == (Exit.UNUSABLE, Exit.UNSURE)
    assert rows("tune") == rows("profile") == {"measured": Exit.FINE, "cannot tell": Exit.UNSURE}
    text = (DOCS / "experiments.md").read_text()
    assert re.search(r"^\| 2 \| a usage error", text, re.MULTILINE)
    assert re.search(r"^\| 129, 130, 143 \|", text, re.MULTILINE)


# --- sentences of prove ---


def proof(*figures, interrupted=False):
    curves = (((2.0, 1.0),) * 3, ((2.0, 1.0),) * 3)
    seeds = len(figures[0].as_it_is) if figures else 3
    return RemedyProof("clip-after-step", "clip-first", figures, (), curves, curves, seeds, interrupted=interrupted)


MIXED = Figure("accuracy", (73.4, 84.0, 86.6), (93.1, 92.4, 94.7))
APART = Figure("accuracy", (76.3, 82.8, 86.7), (176.3, 182.9, 186.8))
ALIKE = Figure(LOSS, (1.0, 2.0, 3.0), (1.001, 1.999, 3.001))


@pytest.mark.parametrize(
    ("figures", "answer"),
    [
        ((MIXED,), ProofAnswer.UNSURE),
        ((ALIKE,), ProofAnswer.DOES_NOT),
        ((APART, MIXED, ALIKE), ProofAnswer.MATTERS),
        ((ALIKE, MIXED), ProofAnswer.UNSURE),
        ((), ProofAnswer.UNSURE),
        ((Figure(LOSS, (math.nan,) * 3, (math.nan,) * 3),), ProofAnswer.UNSURE),
    ],
)
def test_absence_is_only_said_where_it_was_shown(figures, answer):
    said = prove_report.sentence(proof(*figures))
    assert proof(*figures).answer is answer
    assert ("does not matter" in said) is (answer is ProofAnswer.DOES_NOT)
    assert said.startswith("cannot tell") is (answer is ProofAnswer.UNSURE)


def test_the_number_of_seeds_that_would_tell_follows_from_the_spread():
    assert MIXED.says is FigureVerdict.UNSURE
    few = MIXED.seeds
    assert f"--seeds {few}" in prove_report.sentence(proof(MIXED))
    wider = Figure("accuracy", (60.0, 84.0, 99.0), (93.1, 92.4, 94.7))
    assert 3 < few < wider.seeds
    hopeless = Figure("x", (1.0, 2.0, 3.0), (3.0, 2.0, 1.0), least=0.0001)
    assert hopeless.seeds is None
    assert "200 would not be enough" in prove_report.sentence(proof(hopeless))


def test_more_numbers_ask_for_more_certainty():
    one = Figure("x", (1.0, 1.1, 0.9), (0.3, 0.7, 0.5))
    assert one.says is FigureVerdict.DIFFERS
    assert replace(one, among=6).says is FigureVerdict.UNSURE


def test_a_finding_that_matters_decides_the_exit_code_then_one_without_an_answer():
    sure, unsure, none = proof(APART), proof(MIXED), proof(ALIKE)
    assert prove_command._code([sure, unsure, none]) == 1
    assert prove_command._code([unsure, none]) == 3
    assert prove_command._code([none]) == prove_command._code([]) == 0
    assert prove_command._code([none], ProofAnswer.UNSURE) == 3


# --- sentences of overfit ---


def outcome(losses=(), how="stopped", **given):
    steps = tuple(Step(0, loss, None, 0.1 * number) for number, loss in enumerate(losses))
    return RunOutcome(PLAIN, how, steps, **given)


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        ({"applied": 99}, ""),
        ({"applied": 95, "fresh": 4}, ""),
        ({"applied": 80, "fresh": 19}, "19 of 99 batches could not be repeated"),
        ({"applied": 80, "fresh": 19, "by_hand": 1}, "19 of 99 calls of models"),
        ({"same": 99, "by_hand": 1}, ""),
        ({"applied": 99, "loose": 3, "by_hand": 1}, "its targets could not be"),
        ({}, "no batch could be repeated"),
    ],
)
def test_what_was_not_repeated_is_no_overfitting(counts, refused):
    seen = outcome([2.0, 1.0], changes={"first-batches": counts})
    if refused:
        with pytest.raises(NoExperiment, match=refused):
            _check(seen, (2.0, 1.0), 1)
    else:
        _check(seen, (2.0, 1.0), 1)


@pytest.mark.parametrize(
    ("learning", "counts", "why"),
    [
        ({"rates": [0.0, 0.0]}, {}, "the learning rate is 0 in every step"),
        ({"rates": [0.0, 0.1]}, {}, "is 0 in some of the steps"),
        ({"rates": [0.1, 0.1]}, {}, ""),
        (
            {"values": 1000, "trained_values": 10, "frozen_values": 990, "trained": ["fc.bias"]},
            {},
            "10 of 1,000 values of the model are trained (fc.bias)",
        ),
        ({"values": 1000, "trained_values": 800, "frozen_values": 200, "trained": ["a", "b", "c"]}, {}, ""),
        (
            {"values": 1000, "trained_values": 0, "frozen_values": 0, "trained": []},
            {},
            "0 of its 1,000 values are in a parameter group",
        ),
        ({"targets": 50}, {"applied": 49}, "the targets change although the same batch repeats"),
        ({"targets": 50}, {"applied": 49, "by_hand": 1}, ""),
        ({"targets": 1}, {"applied": 49}, ""),
    ],
)
def test_causes_are_those_that_the_run_shows(learning, counts, why):
    seen = outcome([2.0, 2.0], results={"learning": learning}, changes={"first-batches": counts})
    found = causes.shown(seen, 1)
    assert (why in found[0]) if why else not found


def test_a_learning_rate_is_the_cause_where_another_one_learns():
    asked = []

    def learns(factor):
        asked.append(factor)
        return factor != 0.01

    seen = outcome(results={"learning": {"rates": [30.0, 30.0]}})
    assert "30 is too high: 0.003 learns" in causes.rate(seen, (2.0, 900.0), learns)[0]
    assert "too low: 3e+03 learns" in causes.rate(seen, (2.0, 1.999), learns)[0]
    assert asked == [0.01, 0.0001, 100.0]
    assert causes.rate(seen, (2.0, 9.0), lambda factor: False) == []
    assert causes.rate(outcome(), (2.0, 9.0), learns) == []


# --- why there is nothing to see ---


@pytest.mark.parametrize(
    ("given", "happened", "remedy"),
    [
        (
            {"how": "finished", "children": "torch.multiprocessing.spawn"},
            "trains in child processes",
            "the script's own process",
        ),
        ({"how": "finished"}, "without training", "arguments with which the script trains"),
        ({"how": "crashed", "said": "EOFError: EOF when"}, "crashed before its first step", "no standard input"),
        ({"how": "killed"}, "exceeded its limit", "--limit"),
    ],
)
def test_why_there_are_no_steps_is_said_in_one_way(given, happened, remedy):
    error = absent.without_steps(outcome(**given), "steps")
    assert happened in error.happened
    assert remedy in error.remedy


# --- columns ---


def tuned():
    judged = Judged(10.25, 10.01, 110.3, SpeedVerdict.GAIN)
    kinds = ("gain", "saves memory", "losses differ", "cannot tell", "failed")
    rows = [
        SpeedupRow(
            (name,), kinds[number % 5], judged, 1.234, 123.4, 1e-12, "it said " + "much " * 30 if number % 3 else ""
        )
        for number, name in enumerate(SPEEDUPS)
    ]
    found = Tuned("cuda", 0.0394, {"data": 0.03, "forward": 0.0094}, 375 * 2**20, rows, replace(rows[0]))
    found.together, found.best = rows[:5], tuple(SPEEDUPS)[1:7]
    found.whole, found.elsewhere, found.left_out = replace(rows[1], names=found.best), tuple(SPEEDUPS), list(SPEEDUPS)
    return found


def resumed():
    kill = Kill(1234, "write", 3, "checkpoints/a-long-folder-of-checkpoints/checkpoint-123456/training_args.bin")
    missing = tuple(Missing(piece, "seen " * 30, restored=piece.startswith("random")) for piece in PIECES)
    crashed = KillTrial(kill, ResumeVerdict.CRASHED, 1234, note="after 12 steps: " + "word " * 30, in_folder=True)
    differs = KillTrial(kill, ResumeVerdict.DIFFERS, 1234, 1200, 1201, missing, losses=(1.0, 2.0))
    return Resume(
        2000, "finished", 12, tuple(map(float, range(2000))), (crashed, differs, replace(differs, kill=Kill(9)))
    )


def texts():
    found = tuned()
    yield "tune", tune_report.text("a/folder/of/experiments/with/a/long/name/train_the_model.py", found)
    yield "tune, none", tune_report.text("train.py", replace(found, best=(), whole=None, enough_s=1234.0))
    yield "tune, list", tune_report.catalogue()
    result = resumed()
    for verdict in ResumeVerdict:
        trials = tuple(replace(trial, verdict=verdict) for trial in result.trials)
        yield f"verify-resume, {verdict}", resume_report.text(replace(result, trials=trials))
    for figures in ((MIXED, ALIKE, APART), (MIXED,), (ALIKE,), ()):
        long = tuple(replace(figure, name=f"{figure.name} " * 12) for figure in figures)
        yield f"prove, {len(figures)}", prove_report.text(proof(*long, interrupted=True))
    watched = {"watched": {"findings": list(all_rules())}}
    seen = RunOutcome(PLAIN, "stopped", (Step(0, 1.0, None, 0.1),), results=watched)
    yield "prove, rest", "\n".join(prove_report.rest(seen, list(all_rules()), True))
    yield "prove, nothing", "\n".join(prove_report.rest(outcome([1.0]), [], False))
    for answer in LearningVerdict:
        losses = (2.0, 1.0, 0.5)
        sentence = f"this loop {answer}: " + "word " * 40
        why = ("the targets change " + "word " * 30,) if answer is LearningVerdict.STUCK else ()
        yield f"overfit, {answer}", overfit_report.text(Overfit(answer, sentence, losses, outcome(), outcome(), why))
    yield "overfit, interrupted", overfit_report.until((123456.789, 1e-12))
    for how in ("crashed", "killed", "finished"):
        error = absent.without_steps(outcome(how=how, children="torch.multiprocessing.spawn"), "word " * 30)
        yield f"error, {how}", of_experiment(f"NoExperiment: {error}")


@pytest.mark.parametrize(("name", "text"), [pytest.param(name, text, id=name) for name, text in texts()])
def test_texts_fit_80_columns(name, text):
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_answers_of_the_judge_are_documented():
    assert {str(judge([2.3, end])) for end in (0.01, 0.8, 2.2, 9.0)} <= set(rows("overfit"))
