"""Runs that were lived through: judged from events by hand, with their ledger and their timeline."""

from truestep import events as ev
from truestep.events import Site
from truestep.rules import all_rules
from truestep.supervision.judge import Judge
from truestep.supervision.stream import EventStream
from truestep.supervision.summary import summarise
from truestep.timeline import Timeline

STARTED = ev.RunStarted(script="train.py", torch="2.13.0")
PATH = "train.py"
"""Its lines are those of `runs.TRAIN`: 36 reads the loader, 37 the loss, 38 backward, 41 step, 42 schedule."""


def at(line, column=8, end=20):
    return Site(PATH, line, column, line, end)


LOSS, BACKWARD, STEP, SCHEDULE = at(37, 15), at(38, 8, 23), at(41, 8, 24), at(42, 4, 20)
BEGINNING = (
    ev.OptimizerBuilt(optimizer=1, kind="AdamW", parameters=(1,), lr=0.1, site=at(3)),
    ev.SchedulerBuilt(scheduler=1, kind="StepLR", optimizer=1, site=at(4)),
    ev.LoaderMet(loader=1, name="loader", batches=4, shuffled=True, sampler="random", site=at(2)),
    ev.ModeSet(model=1, training=True, site=at(5)),
    ev.ModelMet(model=1, name="model", parameters=(1,), site=LOSS),
    ev.ParameterMet(parameter=1, name="model.weight", shape=(2, 2), model=1),
)
BATCH = ev.BatchDrawn(loader=1)
CALLED = ev.ModelCalled(model=1, site=LOSS)
COMPUTED = ev.LossComputed(kind="cross_entropy", classes=10, site=LOSS)
CLEARED = ev.GradientsZeroed(optimizer=1, observed=1, used=1, site=at(36, 4, 20))
SIZES = {
    step: [ev.LayersMeasured(optimizer=1, parameters=(1, 2), gradients=(0.1**step, bad), updates=(0.01, 0.0))]
    for step, bad in ((0, 0.5), (3, 0.0), (20, float("nan")))
}
"""Sizes of two weights: one gets smaller, the other ends in NaN and never moves."""
ENDED = ev.BackwardEnded(observed=1, written=1, site=BACKWARD, root="NllLossBackward0")
MIXED = ev.BackwardEnded(observed=1, written=1, onto_used=1, site=BACKWARD, root="NllLossBackward0")
STEPPED = ev.OptimizerStepped(optimizer=1, observed=1, fresh=1, site=STEP)
ON_MIXED = ev.OptimizerStepped(optimizer=1, observed=1, mixed=1, site=STEP)
SCHEDULED = ev.SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1)


def lived(
    steps=40, *, clears=True, losses=(), how="finished", read_at=0.0, scheduled=True, before=(), read=None, **rest
):
    """Return the summary of a run of a loop over batches.

    Args:
        steps: number of steps.
        clears: whether the loop clears gradients.
        before: events before each step.
        read: events before single steps, by the number of the step.
        losses: pairs of a step and a value of the loss and of the learning rate that is read there.
    """
    judge, timeline = Judge(all_rules().values()), Timeline(read_at)
    stream = EventStream(judge, timeline)
    values = dict(losses)
    for event in BEGINNING:
        stream.take(event)
    for step in range(steps):
        events = [*before, *(read or {}).get(step, ()), BATCH, *([CLEARED] if clears else []), CALLED, COMPUTED]
        if step in values:
            events += [ev.LossRead(value=values[step], site=BACKWARD, root="NllLossBackward0")]
            events += [ev.LearningRateRead(optimizer=1, rates=(values[step] / 10,))]
        mixes = step and not clears
        for event in (*events, MIXED if mixes else ENDED):
            stream.take(event)
        stream.step(ON_MIXED if mixes else STEPPED)
        if scheduled:
            stream.take(SCHEDULED)
    stream.close()
    stream.settle()
    judge.end(how)
    summary = summarise(judge, STARTED, how, errors=[], **rest)
    object.__setattr__(summary, "timeline", timeline)
    return summary
