from truestep.events import BackwardEnded, GradientsZeroed, ModelMet, OptimizerBuilt, OptimizerStepped, Site, TapeRead
from truestep.rules import rule
from truestep.rules.zero_grad_before_step import ZeroGradBeforeStep
from truestep.testing import judge

BACKWARD, ZERO, STEP = Site("train.py", 30, 8), Site("train.py", 31, 8), Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2))
MADE = BackwardEnded(site=BACKWARD, observed=2, written=2)
THROWN = GradientsZeroed(site=ZERO, optimizer=1, fresh=2, observed=2)
LOST = OptimizerStepped(optimizer=1, site=STEP, observed=2, cleared=2)
KEPT = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)


def test_clearing_between_backward_and_step_is_found_at_the_clearing():
    (finding,) = judge(ZeroGradBeforeStep, [BUILT, *[MADE, THROWN, LOST] * 5])
    assert finding.primary.site == ZERO
    assert [mark.site for mark in finding.related] == [BACKWARD, STEP]
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (5, 5, 0)


def test_clearing_by_the_model_is_found():
    model = ModelMet(model=1, parameters=(1, 2, 3))
    thrown = GradientsZeroed(site=ZERO, model=1, fresh=2, observed=2)
    (finding,) = judge(ZeroGradBeforeStep, [model, BUILT, *[MADE, thrown, LOST] * 3])
    assert finding.primary.site == ZERO


def test_two_optimizers_cleared_before_both_step_are_found():
    second = OptimizerBuilt(optimizer=2, name="second", parameters=(3,))
    zero = Site("train.py", 40, 8)
    other = [GradientsZeroed(site=zero, optimizer=2, fresh=1, observed=1)]
    steps = [LOST, OptimizerStepped(optimizer=2, site=STEP, observed=1, cleared=1)]
    found = judge(ZeroGradBeforeStep, [BUILT, second, *[MADE, THROWN, *other, *steps] * 4])
    assert {finding.primary.site for finding in found} == {ZERO, zero}


def test_clearing_before_backward_and_after_step_is_quiet():
    used = GradientsZeroed(site=ZERO, optimizer=1, used=2, observed=2)
    assert judge(ZeroGradBeforeStep, [BUILT, *[used, MADE, KEPT, used] * 5]) == []


def test_a_gan_that_clears_what_the_generator_left_is_quiet():
    generator = OptimizerBuilt(optimizer=2, name="opt_g", parameters=(3, 4))
    step = OptimizerStepped(optimizer=2, site=Site("train.py", 60, 8), observed=2, fresh=2)
    assert judge(ZeroGradBeforeStep, [BUILT, generator, *[THROWN, MADE, KEPT, MADE, step] * 5]) == []


def test_a_discriminator_that_steps_without_its_own_backward_is_quiet():
    generator = OptimizerBuilt(optimizer=2, name="opt_g", parameters=(3, 4))
    step = OptimizerStepped(optimizer=2, site=Site("train.py", 60, 8), observed=2, fresh=2)
    assert judge(ZeroGradBeforeStep, [BUILT, generator, *[MADE, step, THROWN, LOST] * 5]) == []


def test_a_discriminator_that_steps_before_its_own_backward_is_found():
    generator = OptimizerBuilt(optimizer=2, name="opt_g", parameters=(3, 4))
    step = OptimizerStepped(optimizer=2, site=Site("train.py", 60, 8), observed=2, fresh=2)
    own, through = TapeRead(site=BACKWARD, reached=(1, 2)), Site("train.py", 59, 8)
    both = [TapeRead(site=through, reached=(1, 2, 3, 4)), BackwardEnded(site=through, observed=4, written=4)]
    found = judge(ZeroGradBeforeStep, [BUILT, generator, *[THROWN, LOST, own, MADE, *both, step] * 5])
    assert [finding.primary.site for finding in found] == [ZERO]
    assert [mark.site for mark in found[0].related] == [BACKWARD, STEP]
    assert judge(ZeroGradBeforeStep, [BUILT, generator, *[THROWN, LOST, *both, step] * 5]) == []


def test_giving_up_single_steps_is_quiet():
    assert judge(ZeroGradBeforeStep, [BUILT, *[MADE, KEPT] * 10, *[MADE, THROWN, LOST] * 3]) == []


def test_clearing_some_parameters_is_quiet():
    part = ModelMet(model=1, parameters=(1,))
    thrown = GradientsZeroed(site=ZERO, model=1, fresh=1, observed=1)
    step = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=1, cleared=1)
    assert judge(ZeroGradBeforeStep, [part, BUILT, *[MADE, thrown, step] * 5]) == []


def test_a_run_without_backward_is_not_observed():
    from truestep.rules import Progress

    verdict = rule("zero-grad-before-step")().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == ("not-observed", "no backward pass")


def verdict_of(events):
    from truestep.rules import Progress

    judged, run = ZeroGradBeforeStep(), Progress()
    for event in events:
        run.note(event)
        judged.observe(event, run)
        run.advance(event)
    return judged.verdict(run)


def test_most_gradients_thrown_away_are_not_clear():
    seldom = verdict_of([BUILT, *[*[MADE, THROWN] * 9, MADE, KEPT] * 4])
    assert (seldom.outcome, seldom.reason) == ("not-observed", "most gradients were cleared before any step")
    assert verdict_of([BUILT, *[MADE, THROWN, MADE, KEPT] * 4]).outcome == "clear"


def test_repeated_steps_count():
    rule_ = ZeroGradBeforeStep()
    rule_.again(THROWN, 90)
    rule_.again(KEPT, 10)
    from truestep.rules import Progress

    run = Progress(met={BackwardEnded, OptimizerStepped}, step=10)
    assert rule_.unobserved(run) == "most gradients were cleared before any step"
    rule_.again(KEPT, 40)
    assert rule_.unobserved(run) == ""
