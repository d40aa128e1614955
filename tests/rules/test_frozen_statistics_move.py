"""frozen-statistics-move: frozen layers of batch normalisation in train mode."""

from truestep.events import BatchStatisticsTaken, ModelMet, ModeSet, OptimizerStepped, Site
from truestep.rules.frozen_statistics_move import FrozenStatisticsMove
from truestep.testing import judge

CALLED, SWITCHED, EARLIER = Site("train.py", 20, 8), Site("train.py", 9, 4), Site("train.py", 5, 4)
MET = ModelMet(model=1, name="net", parameters=(1, 2), site=CALLED)
STEP = OptimizerStepped(optimizer=1, fresh=2)
MOVING = BatchStatisticsTaken(model=1, layers=2, values=16, frozen=1, site=CALLED)


def test_frozen_layers_in_train_mode_are_found_where_the_mode_is_set():
    switched = ModeSet(model=1, training=True, site=SWITCHED)
    (finding,) = judge(FrozenStatisticsMove, [MET, switched, *[MOVING, STEP] * 4])
    assert finding.message == "the statistics of 1 frozen layer of `net` go on moving"
    assert finding.primary.site == SWITCHED
    assert finding.related[0].site == CALLED


def test_a_mode_that_was_set_before_the_first_call_counts():
    early = [ModeSet(model=None, training=True, site=EARLIER), ModeSet(model=None, training=False, site=SWITCHED)]
    (finding,) = judge(FrozenStatisticsMove, [MET, *early, *[MOVING, STEP] * 4])
    assert finding.primary.site == EARLIER


def test_without_a_call_of_train_the_model_call_is_named():
    (finding,) = judge(FrozenStatisticsMove, [MET, *[MOVING, STEP] * 4])
    assert finding.primary.site == CALLED
    assert finding.related == ()


def test_a_few_steps_and_layers_in_eval_mode_at_times_are_quiet():
    still = BatchStatisticsTaken(model=1, layers=2, values=16, site=CALLED)
    assert judge(FrozenStatisticsMove, [MET, *[MOVING, STEP] * 3]) == []
    assert judge(FrozenStatisticsMove, [MET, *[*[MOVING, STEP] * 3, still, STEP] * 3]) == []
