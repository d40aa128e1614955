import pytest

from truestep.events import EvaluationLossRead, FigureRead, OptimizerStepped, Site, WeightsKept
from truestep.findings import Confidence
from truestep.rules.worst_weights_kept import WorstWeightsKept
from truestep.testing import judge

COMPARED, TAKEN = Site("train.py", 29, 7), Site("train.py", 31, 35)


def kept(value, *, loss=True, greater=True, site=COMPARED):
    return WeightsKept(
        name="val_loss" if loss else "acc",
        loss=loss,
        share=not loss,
        greater=greater,
        value=value,
        site=site,
        taken=TAKEN,
    )


def run(values, events):
    """Return the events of a run with the values of its evaluations, and those in which weights are kept."""
    found = []
    for place, value in enumerate(values):
        found += [OptimizerStepped(optimizer=1)] * 5
        found += events.get(place, [])
        found.append(EvaluationLossRead(name="val_loss", value=value))
    return found


FALLING = [1.0, 0.8, 0.6, 0.5, 0.4]


def test_weights_of_the_largest_loss_are_found_at_the_comparison():
    (finding,) = judge(WorstWeightsKept, run(FALLING, {0: [kept(1.0)]}))
    assert (finding.primary.site, finding.confidence) == (COMPARED, Confidence.HIGH)
    assert finding.message == "the weights with the largest `val_loss` are kept as the best ones"
    assert finding.primary.label == "1 of the weights kept last, and 0.4 at the lowest"
    assert finding.cost == "4 evaluations were better than that of the weights kept last"
    assert (finding.seen.count, finding.related[0].site) == (1, TAKEN)


def test_weights_of_the_smallest_accuracy_are_found():
    events = [kept(0.4, loss=False, greater=False)]
    events += [FigureRead(name="acc", value=value) for value in (0.4, 0.6, 0.7, 0.8)]
    (finding,) = judge(WorstWeightsKept, events)
    assert finding.message == "the weights with the smallest `acc` are kept as the best ones"


@pytest.mark.parametrize(
    ("values", "events"),
    [
        (FALLING, {0: [kept(1.0, greater=False)], 4: [kept(0.4, greater=False)]}),  # the corrected code
        ([0.4, 0.5, 0.6, 0.7, 0.8], {0: [kept(0.4, greater=False)]}),  # the first evaluation was the best
        (FALLING, {0: [kept(1.0, loss=False)]}),  # larger accuracies
        ([1.0, 0.8, 0.6], {0: [kept(1.0)]}),  # few evaluations
        ([1.0, 0.999, 0.998, 0.997, 0.996], {0: [kept(1.0)]}),  # hardly better ones
        ([0.4, 0.5, 0.6, 0.7], {0: [kept(0.4)], 3: [kept(0.7), kept(0.7, greater=False, site=TAKEN)]}),  # two branches
        (FALLING, {}),
    ],
)
def test_other_weights_are_quiet(values, events):
    assert judge(WorstWeightsKept, run(values, events)) == []
