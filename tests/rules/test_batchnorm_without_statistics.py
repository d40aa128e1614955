"""batchnorm-without-statistics: evaluations with the statistics that the layers were built with."""

from truestep.events import FirstStatisticsUsed, ModelMet, Site
from truestep.findings import Confidence
from truestep.rules.batchnorm_without_statistics import BatchnormWithoutStatistics
from truestep.testing import judge

LOOP, CALLED = Site("ema.py", 12, 8), Site("train.py", 40, 8)
MET = ModelMet(model=2, name="ema", parameters=(3, 4), site=CALLED)


def test_an_average_without_buffers_is_found_at_its_loop():
    (finding,) = judge(
        BatchnormWithoutStatistics, [MET, FirstStatisticsUsed(model=2, layers=2, of=2, loop=LOOP, site=CALLED)]
    )
    assert finding.message == "`ema` is evaluated with statistics of batch normalisation that no batch has changed"
    assert finding.primary.site == LOOP
    assert finding.related[0].site == CALLED
    assert finding.confidence is Confidence.HIGH
    assert "buffers" in finding.help


def test_a_trained_model_is_found_where_it_is_evaluated():
    (finding,) = judge(
        BatchnormWithoutStatistics, [MET, *[FirstStatisticsUsed(model=2, layers=1, of=2, site=CALLED)] * 3]
    )
    assert finding.primary.site == CALLED
    assert finding.confidence is Confidence.MEDIUM
    assert finding.cost == "the running mean is 0 and the variance 1 in 1 of 2 layers"
    assert finding.seen.count == 3


def test_evaluations_with_statistics_are_quiet():
    assert judge(BatchnormWithoutStatistics, [MET]) == []
