"""The parts of the page as plain values: code, the annotated loop, the score, the curves, several runs."""

import linecache
import os
from dataclasses import replace

import pytest
from lived import BACKWARD, LOSS, PATH, SIZES, at, lived
from runs import CADENCE, DIED, KEPT, MIXED, PLAIN, RUNS

from truestep import events as ev
from truestep.events import Site
from truestep.findings import Mark, Summary
from truestep.report.page.annotated import annotated
from truestep.report.page.code import excerpts, marked
from truestep.report.page.compared import compared
from truestep.report.page.duties import DUTIES
from truestep.report.page.findings import cards, manuals, post_mortem, uncounted
from truestep.report.page.lines import done
from truestep.report.page.pictures.alerts import alerts
from truestep.report.page.pictures.curves import charts, log_share, thinned
from truestep.report.page.pictures.heat import Cell, heat_maps
from truestep.report.page.run_page import run_page
from truestep.report.page.score import score
from truestep.rules import all_rules
from truestep.timeline import Timeline


def text(pieces):
    return "".join(piece.text for piece in pieces)


# --- code ------------------------------------------------------------------------------------------------------------


def test_pieces_have_the_kinds_of_tokens():
    kinds = [(piece.text, piece.kind) for piece in marked(PATH, 35)]
    assert kinds == [
        ("for", "keyword"),
        (" epoch ", ""),
        ("in", "keyword"),
        (" range(", ""),
        ("10", "number"),
        ("):", ""),
    ]


def test_comments_texts_and_names_have_their_kinds(programs):
    (programs / "kinds.py").write_text("def step(loss='x'):  # of a batch\n    return None\n", encoding="utf-8")
    kinds = {piece.text.strip(): piece.kind for line in (1, 2) for piece in marked("kinds.py", line)}
    assert kinds["# of a batch"] == "comment"
    assert (kinds["'x'"], kinds["def"], kinds["step"], kinds["return"]) == ("string", "keyword", "name", "keyword")
    assert "loss" not in kinds


def test_the_expression_of_a_site_is_marked():
    under = [piece.text for piece in marked(PATH, 38, [BACKWARD]) if piece.marked]
    assert under == ["loss.backward()"]
    accent = marked(PATH, 46, [at(46, 15, 31)])  # a column in bytes, after a tab and a letter of two bytes
    assert "".join(piece.text for piece in accent if piece.marked) == "optimizer.step()"
    assert "\t" not in text(accent)


@pytest.mark.parametrize("source", ['x = """never closed\n', "  def:\n\tindent\n", "f(\x00\x1b[31m)\n", "é = 'ü'\r\n"])
def test_a_file_that_is_not_python_is_shown(programs, source):
    (programs / "odd.py").write_text(source, encoding="utf-8", newline="")
    shown = text(marked("odd.py", 1))
    assert shown
    assert shown.isprintable()


def test_an_excerpt_joins_the_cause_with_the_finding():
    (shown,) = excerpts(MIXED.primary, MIXED.related)
    assert [line.number for line in shown.lines] == [36, 37, 38, 39, 40, 41, 42, 43]
    (arrow,) = shown.arrows
    rows = {line.number: line.row for line in shown.lines}
    assert (arrow.first, arrow.last, arrow.down) == (rows[38], rows[41], True)
    assert [line.number for line in shown.lines if line.primary] == [41]
    assert rows[39] == rows[38] + 2  # the label has its own row


def test_lines_far_from_each_other_are_folded():
    (shown,) = excerpts(Mark(at(46), "here"), (Mark(at(35), "there"),))
    (fold,) = [line for line in shown.lines if line.skipped]
    numbers = [line.number for line in shown.lines if line.number]
    assert numbers == [33, 34, 35, 36, 37, 44, 45, 46]
    assert fold.skipped == 6


def test_files_that_cannot_be_read_have_labels_only():
    first, second, gone = excerpts(PLAIN.primary, PLAIN.related)
    assert [first.path, second.path] == ["model.py", "train.py"]
    assert not first.missing
    assert gone.missing
    assert [label.text for line in gone.lines for label in line.labels] == ["line 4: the optimizer is built here"]


# --- findings --------------------------------------------------------------------------------------------------------


def test_a_card_has_evidence_cost_fix_and_its_consequences():
    (card,) = cards(RUNS["one"])
    assert (card.rule, card.kind, card.place) == ("missing-zero-grad", "error", "train.py:41")
    assert dict(card.facts)["cost"] == MIXED.cost
    assert card.help == MIXED.help
    assert "+" in {sign for sign, _ in card.diff} <= {"+", "-", "@", " "}
    assert not any("# error:" in line for _, line in card.diff)


def test_lines_of_a_fix_are_code():
    card = next(card for card in cards(RUNS["many"]) if card.rule == PLAIN.rule)
    assert card.help == "hold the layers in a ModuleList:"
    assert card.added == ("self.layers = nn.ModuleList(layers)",)
    assert card.notes == ("no call of add_param_group was seen",)


def test_explained_findings_are_below_their_cause():
    followed = replace(KEPT, explained_by="missing-zero-grad", rank=None)
    (card,) = cards(Summary("train.py", "finished", 313, (MIXED, followed)))
    assert [other.rule for other in card.consequences] == [KEPT.rule]


def test_suppressed_and_uncertain_findings_have_their_reason():
    found = uncounted(RUNS["many"])
    assert ("scheduler-wrong-cadence", "train.py:42", "suppressed: one step per epoch is meant") in found
    assert CADENCE.suppressed
    assert [rule for rule, _, reason in found if "low confidence" in reason] == ["graph-cut"]


def test_a_post_mortem_is_a_card():
    card = post_mortem(RUNS["died"])
    assert (card.kind, card.rule, card.message) == ("post-mortem", "graph-freed", DIED.message)
    assert card.facts[0] == ("error", DIED.error)
    assert post_mortem(RUNS["one"]) is None


def test_the_manual_has_the_diff_of_the_proof():
    (manual,) = manuals(["missing-zero-grad", "no-such-rule"])
    assert any(sign == "+" and "zero_grad" in line for sign, line in manual.diff)
    assert manual.page.text("Fix")


# --- the annotated loop ----------------------------------------------------------------------------------------------


def test_each_line_has_what_it_did():
    summary = lived(40, losses=[(0, 2.3), (20, 1.5)])
    found = {line: [did.text for did in dids] for (_, line), dids in done(summary).items()}
    assert found[41] == ["40 steps of AdamW"]
    assert found[38] == [
        "40 backward passes, all used once",
        "cross entropy of 10 classes: 2.3 at first (a guess: 2.3), 1.5 at last",
    ]
    assert "clears the gradients of optimizer 40 times" in found[36]
    assert "steps StepLR 40 times" in found[42]
    assert "computes cross_entropy 40 times" in found[37]
    assert found[5] == ["sets train mode once"]
    assert "StepLR: 40 steps" in found[4]


def test_every_operation_has_a_duty_with_rules_that_exist():
    for summary in (lived(40, losses=[(0, 2.3)]), lived(12, clears=False)):
        assert {did.operation for dids in done(summary).values() for did in dids} <= set(DUTIES)
    assert {rule for duty in DUTIES.values() for rule in duty.rules} <= set(all_rules())


def test_the_lines_of_findings_are_marked():
    summary = lived(40, clears=False)
    (file,) = annotated(summary)
    lines = {line.number: line for part in file.stretches for line in part.lines}
    assert lines[41].findings == ("missing-zero-grad",)
    assert lines[38].causes == ("missing-zero-grad",)
    (note,) = lines[38].notes
    assert note.texts == ("40 backward passes, 40 used, 39 used again by later steps",)


def test_lines_that_took_no_part_are_folded():
    (file,) = annotated(lived(40))
    assert [part.folded for part in file.stretches] == [False, True, False]
    assert [line.number for part in file.stretches for line in part.lines] == list(range(1, 47))


def test_a_changed_and_a_missing_file_are_named(programs):
    os.utime(PATH, (2000, 2000))
    assert annotated(lived(12, read_at=3000.0))[0].state == ""
    assert annotated(lived(12, read_at=1000.0))[0].state == "changed"
    (programs / PATH).unlink()
    linecache.clearcache()
    (file,) = annotated(lived(12, read_at=1000.0))
    assert (file.state, file.stretches) == ("missing", ())
    assert (41, "12 steps of AdamW") in [(line, note.texts[0]) for line, note in file.facts]


# --- the score -------------------------------------------------------------------------------------------------------


def test_the_order_of_a_step():
    first, *_, typical = score(lived(40))
    assert [(note.lane, note.line) for note in first.notes] == [
        ("mode", 5),
        ("data", 0),
        ("clear", 36),
        ("forward", 37),
        ("loss", 37),
        ("backward", 38),
        ("step", 41),
        ("schedule", 42),  # after the step, and in its pass through the loop
    ]
    assert [note.lane for note in typical.notes] == [note.lane for note in first.notes[1:]]
    assert typical.title == "38 steps were like this one"


def test_wrong_notes_are_those_of_findings():
    first, second, *_ = score(lived(40, clears=False))
    assert {note.lane: note.part for note in second.notes if note.part} == {"step": "wrong", "backward": "related"}
    assert not [note for note in first.notes if note.part]  # nothing is mixed at step 0


def test_repeated_phrases_are_written_once():
    timeline = Timeline()
    batch, call = ev.BatchDrawn(loader=1), ev.ModelCalled(model=1, site=LOSS, tracked=False)
    events = (*[batch, call] * 19, ev.ModeSet(model=1, training=True, site=at(5)))
    timeline.show(1, events, (0, 1))
    (bar,) = score(Summary(PATH, "finished", 0, timeline=timeline))
    assert [(note.lane, note.times, note.phrase) for note in bar.notes] == [
        ("data", 19, 2),
        ("forward", 19, 0),
        ("mode", 1, 1),
    ]


def test_a_loss_inside_of_the_model_comes_after_the_beginning_of_its_call():
    timeline = Timeline()
    inside = ev.LossComputed(kind="cross_entropy", site=Site(PATH, 3, 4, 3, 9, "Net.forward"))
    timeline.show(1, (inside, ev.ModelCalled(model=1, site=LOSS)), (0, 1))
    (bar,) = score(Summary(PATH, "finished", 0, timeline=timeline))
    assert [note.lane for note in bar.notes] == ["forward", "loss"]


def test_calls_that_no_account_takes_for_an_evaluation_are_none():
    called = ev.ModelCalled(model=2, site=at(39), training=False, grad=False, tracked=False)
    read = ev.InputsRead(model=2, training=False, site=at(39), shape=(2, 2))
    summary = lived(40, before=(called, read))
    assert {did.operation for did in done(summary)[PATH, 39]} == {"forward"}


def test_long_lines_are_continued_below_their_indent():
    (file,) = annotated(lived(40))
    lines = {line.number: line for part in file.stretches for line in part.lines}
    assert (lines[38].indent, text(lines[38].pieces)) == (8, "loss.backward()")
    assert (lines[1].indent, lines[1].pieces) == (0, ())


def test_a_long_step_is_cut():
    timeline = Timeline()
    timeline.show(1, tuple(ev.ModelCalled(model=1, site=at(line)) for line in range(1, 101)), (0, 1))
    (bar,) = score(Summary(PATH, "finished", 0, timeline=timeline))
    assert (len(bar.notes), bar.left_out) == (48, 52)


def test_core_lanes_are_shown_without_notes():
    page = run_page(lived(12, clears=False))
    assert "clear" in page.lanes
    assert "clip" not in page.lanes


# --- curves ----------------------------------------------------------------------------------------------------------


def test_values_become_lines():
    loss, rate = charts([("", lived(40, losses=[(0, 2.3), (20, 1.5)]))])
    assert (loss.subject, rate.subject) == ("loss", "rate")
    (line,) = loss.lines
    assert line.label == "train.py:38"
    assert line.points == ((0, 2.3), (20, 1.5))
    assert line.path.startswith("M0.0 ")
    assert "L1000.0 " in line.path
    assert loss.said == "Loss. train.py:38: 2.3 at step 0, 1.5 at step 20, between 1.5 and 2.3."


def test_one_value_is_no_curve():
    assert charts([("", lived(40, losses=[(0, 2.3)]))]) == []
    assert charts([("", Summary("train.py", "finished", 3))]) == []


@pytest.mark.parametrize(
    "values", [(0.0, 0.0), (5.0, 5.0), (-3.0, -3.0), (1e-9, 1e6), (-1.0, 1.0), (99.5, 100.0), (0.1, 0.1000001)]
)
def test_the_axis_contains_every_value(values):
    chart = charts([("", lived(40, losses=list(zip((0, 20), values, strict=True))))])[0]
    heights = [float(part.split()[1]) for part in chart.lines[0].path[1:].split("L")]
    assert all(0 <= height <= 1000 for height in heights)
    assert all(0 <= tick.share <= 100 for tick in (*chart.y_ticks, *chart.x_ticks, *chart.x_ticks_log))
    assert len({tick.text for tick in chart.y_ticks}) == len(chart.y_ticks) >= 2
    assert chart.log == (values == (1e-9, 1e6))


def test_equal_figures_are_one_line():
    read = {
        step: [ev.FigureRead(name=name, value=value, batches=2) for name in ("accuracy", "right / total")]
        for step, value in ((5, 0.5), (10, 0.8))
    }
    read[20] = [ev.FigureRead(name="accuracy", value=0.9), ev.FigureRead(name="f", label="F1", value=0.7)]
    read[30] = [ev.FigureRead(name="f", label="F1", value=0.8)]
    (chart,) = charts([("", lived(40, read=read))])
    assert chart.subject == "figure"
    assert [(line.label, line.points) for line in chart.lines] == [
        ("F1", ((20, 0.7), (30, 0.8))),
        ("accuracy", ((5, 0.5), (10, 0.8), (20, 0.9))),
    ]


def test_quotients_without_comparisons_are_no_figures():
    read = {step: [ev.FigureRead(name="total / n", value=0.0)] for step in (5, 10)}
    assert charts([("", lived(40, read=read))]) == []


# --- alerts ----------------------------------------------------------------------------------------------------------


def validated(losses):
    """Return a run with the loss of an evaluation before each third step."""
    return lived(
        60, read={3 * n: [ev.EvaluationLossRead(name="val_loss", value=loss)] for n, loss in enumerate(losses)}
    )


def test_a_loss_that_rises_after_its_lowest_value_is_an_alert():
    rising = [2.0, 1.5, 1.0, 1.2, 1.4, 1.5, 1.7, 1.8, 1.9, 2.1]
    assert alerts([("", validated(rising)), ("b", validated(rising))]) == (
        "`val_loss` was lowest at step 6 (1) and is 2.1 in the last of 7 later evaluations that were read",
        "b: `val_loss` was lowest at step 6 (1) and is 2.1 in the last of 7 later evaluations that were read",
    )


@pytest.mark.parametrize(
    "losses",
    [
        [2.0 - 0.1 * n for n in range(10)],
        [2.0, 1.5, 1.0, 1.01, 0.99, 1.02, 1.0, 1.01, 1.03, 1.0],  # level
        [2.0, 1.5, 1.0, 1.8, 1.9, 2.1],  # few
        [2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.0, 1.2],  # the lowest is one of the last
        [2.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],  # may be negative, as a likelihood
    ],
)
def test_other_losses_are_no_alert(losses):
    assert alerts([("", validated(losses))]) == ()


def test_an_accuracy_that_falls_is_an_alert():
    values = [0.5, 0.7, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6]
    run = lived(60, read={3 * n: [ev.FigureRead(name="accuracy", value=value)] for n, value in enumerate(values)})
    assert alerts([("", run)]) == (
        "`accuracy` was highest at step 6 (0.9) and is 0.6 in the last of 5 later evaluations that were read",
    )


def test_a_quotient_that_falls_is_no_alert_unless_it_counts_correct_predictions():
    def run(name):
        values = [1.2, 0.9, 0.7, 0.6, 0.5, 0.4, 0.4, 0.4, 0.4]
        read = {3 * n: [ev.FigureRead(name=name, value=value, batches=4)] for n, value in enumerate(values)}
        return alerts([("", lived(60, read=read))])

    assert run("total / len(test)") == ()
    assert len(run("correct / 397")) == 1


def test_a_gradient_far_above_its_other_readings_is_an_alert():
    def run(largest):
        sizes = [0.1, 0.11, 0.1, largest, 0.12, 0.1, 0.1]
        return lived(
            60,
            read={
                3 * n: [
                    ev.LayersMeasured(optimizer=1, parameters=(1, 2), gradients=(0.1 + n / 1e3, size), updates=(0, 0))
                ]
                for n, size in enumerate(sizes)
            },
        )

    assert alerts([("", run(8.0))]) == (
        "the gradient of `parameter 2` at step 9 is 80 times the median of its readings",
    )
    assert alerts([("", run(0.5))]) == ()
    assert alerts([("", Summary("train.py", "finished", 3))]) == ()


# --- layers ----------------------------------------------------------------------------------------------------------


def test_weights_are_shaded_between_the_least_and_the_largest_value():
    gradients, updates = heat_maps(lived(40, read=SIZES))
    assert (gradients.title, gradients.steps) == ("Gradients", ("0", "3", "20"))
    assert (gradients.low, gradients.high) == ("1e-08", "1")  # 1e-20 has the shade of the lowest decade
    (weight, other) = gradients.rows
    assert (weight.name, weight.shape) == ("model.weight", "2 x 2")
    assert weight.short == "model.weight"  # the other one has no name
    assert [cell.shade for cell in weight.cells] == [100, 62, 0]
    assert other.cells[1:] == (Cell(0, "0", "zero"), Cell(0, "nan", "wrong"))
    assert gradients.states == ("zero", "wrong")
    assert {cell.shade for cell in updates.rows[0].cells} == {50}


def test_each_optimizer_has_its_layers():
    def size(optimizer, parameters):
        measured = (0.1,) * len(parameters)
        return ev.LayersMeasured(optimizer=optimizer, parameters=parameters, gradients=measured, updates=measured)

    read = {0: [size(1, (1, 3)), size(2, (4,))], 1: [size(1, (1,)), size(2, (4,))], 2: [size(3, (5,))]}
    found = heat_maps(lived(40, read=read))
    assert [one.title for one in found] == [
        f"{what} of {owner}" for owner in ("AdamW 1", "optimizer 2") for what in ("Gradients", "Updates")
    ]
    assert found[0].rows[1].cells[1].state == "absent"


def test_many_readings_are_thinned():
    read = {
        step: [ev.LayersMeasured(optimizer=1, parameters=(1,), gradients=(0.1 + step,), updates=(0.1,))]
        for step in range(1000)
    }
    (one, _) = heat_maps(lived(1000, read=read))
    assert len(one.steps) == 32
    assert (one.steps[0], one.steps[-1]) == ("0", "999")
    assert heat_maps(Summary("train.py", "finished", 3)) == ()


def test_several_runs_share_a_chart():
    pair = [("a", lived(40, losses=[(0, 2.3), (20, 1.5)])), ("b", lived(40, losses=[(0, 2.2), (30, 0.5)]))]
    assert [line.label for line in charts(pair)[0].lines] == ["a: train.py:38", "b: train.py:38"]
    assert charts(pair)[0].steps == 30


def test_thinning_keeps_the_extremes():
    points = [(step, float(step == 777)) for step in range(100_000)]
    kept = thinned(points, 240)
    assert len(kept) <= 240
    assert (777, 1.0) in kept
    assert kept == sorted(kept)


def test_a_logarithmic_axis_begins_with_step_0():
    assert [log_share(step, 1000) for step in (0, 1000)] == [0.0, 1.0]


# --- the whole page as values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tone", "headline"),
    [
        ("one", "bad", "1 failure found"),
        ("clear", "good", "no failure found"),
        ("died", "bad", "the script ended with an error after 12 steps"),
        ("nothing", "limited", "nothing was checked: the script was interrupted before its first step"),
    ],
)
def test_the_verdict(name, tone, headline):
    page = run_page(RUNS[name])
    assert (page.tone, page.headline) == (tone, headline)


def test_a_record_without_an_end():
    page = run_page(lived(40, how="unfinished"))
    assert page.headline == "no failure found in the 40 steps before its record breaks off"
    assert (page.tone, page.end) == ("limited", "no end in the record")


def test_every_fact_of_the_ledger_is_in_a_table():
    summary = lived(40, losses=[(0, 2.3), (20, 1.5)])
    page = run_page(summary)
    assert [row.account for row in page.ledger] == [line.account for line in summary.ledger]
    for row, line in zip(page.ledger, summary.ledger, strict=True):
        heads = {head for _, heads, _ in row.facts for head in heads}
        for name, value in line.facts.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                assert {key.replace("_", " ") for entry in value for key in entry} <= heads
            elif value not in ([], {}):
                assert name.replace("_", " ") in heads


def test_every_rule_is_in_the_table():
    page = run_page(lived(40))
    assert {row.rule for row in page.verdicts} == set(all_rules())
    assert all(row.title for row in page.verdicts)
    assert [row.outcome for row in page.verdicts] == sorted(
        (row.outcome for row in page.verdicts), key=["found", "clear", "not observed"].index
    )


def test_runs_are_compared():
    both = compared([run_page(lived(40), "a"), run_page(lived(30, clears=False), "b")])
    steps = next(row for row in both.facts if row.head == "steps")
    assert (steps.cells, steps.differs) == (("40", "30"), True)
    (mixed,) = both.findings
    assert mixed.head == "missing-zero-grad"
    assert mixed.cells[0] == "clear"
    assert mixed.cells[1].startswith("train.py:41")
    gradients = next(row for row in both.ledger if row.head == "gradients")
    assert gradients.differs
