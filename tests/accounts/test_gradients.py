"""The account of gradients on hand-built events: the gradients of each line, and how they ended."""

from truestep.events import (
    BackwardEnded,
    GradientsZeroed,
    HandStepped,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ScalerStepped,
    Site,
    TapeRead,
)
from truestep.rules import Progress

LINE, OTHER = Site("train.py", 30, 8), Site("train.py", 50, 8)
ZERO, STEP = Site("train.py", 29, 8), Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2))
SECOND = OptimizerBuilt(optimizer=2, name="second", kind="Adam", parameters=(3,))
MADE = BackwardEnded(site=LINE, observed=2, written=2)
ADDED = BackwardEnded(site=LINE, observed=2, written=2, onto_fresh=2)
MIXED = BackwardEnded(site=LINE, observed=2, written=2, onto_used=2)
CLEARED = GradientsZeroed(site=ZERO, optimizer=1, fresh=2, observed=2)
CLEARED_USED = GradientsZeroed(site=ZERO, optimizer=1, used=2, observed=2)
NOTHING = GradientsZeroed(site=ZERO, optimizer=1, observed=2)
USED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
USED_MIXED = OptimizerStepped(optimizer=1, site=STEP, observed=2, mixed=2)
EMPTY = OptimizerStepped(optimizer=1, site=STEP, observed=2, cleared=2)


def account(*events):
    run = Progress()
    for event in events:
        run.note(event)
    return run.gradients


def line(*events, site=LINE):
    return account(*events).lines()[site]


def test_a_plain_loop_uses_each_pass_once():
    facts = line(BUILT, *[NOTHING, MADE, USED, CLEARED_USED] * 4)
    assert (facts.made, facts.used, facts.again, facts.wasted) == (4, 4, 0, 0)


def test_a_window_uses_all_its_passes():
    facts = line(BUILT, *[MADE, ADDED, ADDED, USED, CLEARED_USED] * 3)
    assert (facts.made, facts.used, facts.wasted) == (9, 9, 0)


def test_passes_cleared_within_a_window_are_discarded_at_the_line_that_clears():
    facts = line(BUILT, *[NOTHING, MADE, CLEARED, MADE, CLEARED, MADE, USED] * 3)
    assert (facts.made, facts.used, facts.discarded) == (9, 3, {ZERO: 6})
    assert facts.lost == {2: 3}


def test_passes_cleared_by_assignment_are_discarded_by_hand():
    facts = line(BUILT, *[MADE, MADE, USED, CLEARED_USED] * 3)
    assert (facts.made, facts.used, facts.discarded) == (6, 3, {None: 3})


def test_gradients_that_are_never_cleared_are_used_again():
    facts = line(BUILT, MADE, USED, *[MIXED, USED_MIXED] * 4)
    assert (facts.made, facts.used, facts.again, facts.wasted) == (5, 5, 4, 0)


def test_a_step_without_its_gradients_discards_them():
    facts = line(BUILT, *[MADE, EMPTY] * 3)
    assert (facts.made, facts.used, facts.discarded) == (3, 0, {None: 3})


def test_what_one_network_leaves_in_another_is_not_discarded():
    generator = BackwardEnded(site=OTHER, observed=3, written=3)
    critic_cleared = GradientsZeroed(site=ZERO, optimizer=1, fresh=2, observed=2)
    step = OptimizerStepped(optimizer=2, site=STEP, observed=1, fresh=1)
    facts = account(BUILT, SECOND, *[critic_cleared, MADE, USED, generator, step] * 5).lines()
    assert (facts[LINE].used, facts[LINE].wasted) == (5, 0)
    assert (facts[OTHER].used, facts[OTHER].wasted) == (5, 0)


def test_a_model_that_is_cleared_counts_for_the_optimizers_that_it_holds_whole():
    whole = ModelMet(model=1, parameters=(1, 2, 3))
    part = ModelMet(model=2, parameters=(1,))
    by_whole = GradientsZeroed(site=ZERO, model=1, fresh=2, observed=2)
    by_part = GradientsZeroed(site=ZERO, model=2, fresh=1, observed=1)
    assert line(BUILT, whole, MADE, by_whole).discarded == {ZERO: 1}
    assert line(BUILT, part, MADE, by_part).discarded == {}


def test_passes_in_a_closure_and_updates_by_hand_are_used():
    inside = BackwardEnded(site=LINE, observed=2, written=2, in_step=True)
    assert line(BUILT, *[inside] * 3).used == 3
    assert line(MADE, HandStepped(site=LINE, moved=1), MADE).used == 1


def test_gradients_for_an_input_or_for_the_script_are_used_elsewhere():
    weight = ParameterMet(parameter=7, name="weight", model=1)
    image = ParameterMet(parameter=8, name="parameter 8")
    assert line(BUILT, MADE).elsewhere is None
    assert line(BUILT, MADE, TapeRead(site=LINE, reached=(1, 2))).elsewhere is False
    assert line(BUILT, weight, MADE, TapeRead(site=LINE, reached=(1, 7))).elsewhere is False
    assert line(BUILT, image, MADE, TapeRead(site=LINE, reached=(1, 8))).elsewhere is True
    assert line(BUILT, MADE, TapeRead(site=LINE, reached=(1, 2), read=True)).elsewhere is True


def test_repeated_chunks_are_counted_without_being_shown():
    run = Progress()
    for event in [BUILT, NOTHING, MADE, CLEARED, MADE, USED]:
        run.note(event)
    run.gradients.tally.cut()
    for event in [NOTHING, MADE, CLEARED, MADE, USED]:
        run.note(event)
    run.gradients.tally.repeat(run.gradients.tally.cut(), 98)
    facts = run.gradients.lines()[LINE]
    assert (facts.made, facts.used, facts.wasted, facts.lost) == (200, 100, 100, {1: 100})


def test_an_optimizer_that_never_steps_keeps_a_bounded_number_of_passes():
    gradients = account(BUILT, *[ADDED] * 5000)
    assert len(gradients._open[1]) == 1000
    assert gradients.lines()[LINE].made == 5000


def test_passes_with_gradients_that_a_scaler_skips_are_not_discarded():
    skipped = ScalerStepped(scaler=9, optimizer=1, skipped=True)
    facts = line(BUILT, *[NOTHING, MADE, USED, CLEARED_USED] * 3, MADE, skipped, CLEARED)
    assert (facts.made, facts.used, facts.skipped, facts.wasted) == (4, 3, 1, 0)


def test_the_ledger_states_the_passes_and_their_use():
    assert account(BUILT).entry() is None
    once = account(BUILT, *[NOTHING, MADE, USED, CLEARED_USED] * 4).entry()
    assert once.text == "4 backward passes (train.py:30), all used once"
    again = account(BUILT, MADE, USED, *[MIXED, USED_MIXED] * 4).entry()
    assert again.text == "5 backward passes (train.py:30), 5 used, 4 used again"
    lost = account(BUILT, *[NOTHING, MADE, CLEARED, MADE, CLEARED, MADE, USED] * 3).entry()
    assert lost.text == "9 backward passes (train.py:30), 3 used, 6 cleared unused"
    (facts,) = lost.facts["lines"]
    assert facts["discarded"] == [{"by": {"path": "train.py", "line": 29, "function": "<module>"}, "passes": 6}]
    empty = account(BUILT, *[MADE, EMPTY] * 3).entry()
    assert empty.text == "3 backward passes (train.py:30), 3 cleared unused"


def test_a_pass_that_reaches_one_of_two_networks_is_not_used_by_the_step_of_the_other():
    critic, generator = TapeRead(site=LINE, reached=(1, 2)), TapeRead(site=OTHER, reached=(1, 2, 3))
    passed = BackwardEnded(site=OTHER, observed=3, written=3, onto_fresh=2)
    step = OptimizerStepped(optimizer=2, site=STEP, observed=1, fresh=1)
    events = [CLEARED, critic, MADE, generator, passed, step] * 5
    lines = account(BUILT, SECOND, *events, CLEARED).lines()
    assert (lines[LINE].used, lines[LINE].discarded) == (0, {ZERO: 5})
    assert (lines[OTHER].used, lines[OTHER].wasted) == (5, 0)


def test_the_first_passes_of_a_later_model_at_the_same_line_belong_to_its_optimizer():
    first, later = TapeRead(site=LINE, reached=(1, 2)), TapeRead(site=LINE, reached=(3,))
    step = OptimizerStepped(optimizer=2, site=STEP, observed=1, fresh=1)
    facts = line(BUILT, *[first, NOTHING, MADE, USED, CLEARED_USED] * 3, SECOND, MADE, step, later, MADE, step)
    assert (facts.made, facts.used, facts.wasted) == (5, 5, 0)


def test_passes_of_a_later_model_do_not_wait_for_the_optimizer_of_the_one_before():
    first, later = TapeRead(site=LINE, reached=(1, 2)), TapeRead(site=LINE, reached=(3,))
    cleared = GradientsZeroed(site=ZERO, optimizer=2, fresh=1, observed=1)
    step = OptimizerStepped(optimizer=2, site=STEP, observed=1, fresh=1)
    facts = line(BUILT, *[first, NOTHING, MADE, USED] * 3, SECOND, *[later, MADE, cleared] * 4, later, MADE, step)
    assert (facts.used, facts.discarded) == (4, {ZERO: 4})


def test_passes_of_models_that_take_turns_at_a_line_are_used_by_their_optimizers():
    first, second = TapeRead(site=LINE, reached=(1, 2)), TapeRead(site=LINE, reached=(3,))
    cleared = GradientsZeroed(site=ZERO, optimizer=2, used=1, observed=1)
    step = OptimizerStepped(optimizer=2, site=STEP, observed=1, fresh=1)
    turns = [first, CLEARED_USED, MADE, USED, second, cleared, MADE, step]
    unread = [CLEARED_USED, MADE, USED, cleared, MADE, step]
    facts = line(BUILT, SECOND, *turns * 2, *unread * 4)
    assert (facts.made, facts.used, facts.wasted) == (12, 12, 0)
