from truestep.events import BackwardEnded, GradientsZeroed, LossRead, OptimizerBuilt, OptimizerStepped, Site
from truestep.rules.loss_differentiated_twice import LossDifferentiatedTwice
from truestep.testing import judge

FIRST, SECOND, STEP, ZERO = (Site("train.py", line, 8) for line in (30, 31, 32, 29))
BUILT = OptimizerBuilt(optimizer=1, parameters=(1, 2))
PASS = BackwardEnded(site=FIRST, observed=2, written=2, retained=True)
AGAIN = BackwardEnded(site=SECOND, observed=2, written=2, onto_fresh=2, same_loss=True)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)


def test_two_passes_from_one_loss_are_found_at_the_second():
    (finding,) = judge(LossDifferentiatedTwice, [BUILT, *[PASS, AGAIN, STEPPED] * 4])
    assert finding.primary.site == SECOND
    assert finding.related[0].site == FIRST
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (4, 4, 0)


def test_a_single_step_is_quiet():
    assert judge(LossDifferentiatedTwice, [BUILT, PASS, AGAIN, STEPPED, *[PASS, STEPPED] * 4]) == []


def test_two_losses_are_quiet():
    other = BackwardEnded(site=SECOND, observed=2, written=2, onto_fresh=2)
    assert judge(LossDifferentiatedTwice, [BUILT, *[PASS, other, STEPPED] * 4]) == []


def test_gradients_that_are_cleared_between_the_passes_are_quiet():
    cleared = GradientsZeroed(site=ZERO, optimizer=1, fresh=2, observed=2)
    new = BackwardEnded(site=SECOND, observed=2, written=2, same_loss=True)
    assert judge(LossDifferentiatedTwice, [BUILT, *[PASS, cleared, new, STEPPED] * 4]) == []
    assert judge(LossDifferentiatedTwice, [BUILT, *[PASS, AGAIN, cleared, PASS, STEPPED] * 4]) == []


def test_passes_for_different_parameters_are_quiet():
    rest = BackwardEnded(site=SECOND, observed=2, written=1, onto_fresh=0, same_loss=True)
    assert judge(LossDifferentiatedTwice, [BUILT, *[PASS, rest, STEPPED] * 4]) == []


def test_repeated_passes_without_a_step_are_quiet():
    assert judge(LossDifferentiatedTwice, [BUILT, *[PASS, AGAIN] * 8]) == []


def window(*values, onto=2):
    passes = []
    for number, value in enumerate(values):
        added = onto if number else 0
        passes += [LossRead(value=value, site=FIRST), BackwardEnded(site=FIRST, written=2, onto_fresh=added)]
    return [*passes, STEPPED]


def test_windows_of_equal_losses_are_found_at_their_passes():
    events = [one for value in (2.5, 2.1, 1.7, 1.6) for one in window(value, value, value)]
    (finding,) = judge(LossDifferentiatedTwice, [BUILT, *events])
    assert finding.primary.site == FIRST
    assert finding.message.startswith("all 3 backward passes of a window have an equal loss")
    assert finding.seen.count == 4


def test_other_windows_are_quiet():
    equal = [one for value in (2.5, 2.1, 1.7, 1.6) for one in window(value, value)]
    constant = [one for _ in range(8) for one in window(0.0, 0.0)]
    parts = [one for value in (2.5, 2.1, 1.7, 1.6) for one in window(value, value, onto=0)]
    alone = [one for value in (2.5, 2.1, 1.7, 1.6) for one in window(value)]
    for events in (equal[:-5], [*equal, *window(1.5, 1.4)], constant, parts, alone):
        assert judge(LossDifferentiatedTwice, [BUILT, *events]) == []
