from truestep.events import LayersJoined, OptimizerStepped, ParameterMet, Site, TapeRead
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.layers_without_activation import LayersWithoutActivation
from truestep.testing import judge

HIDDEN, HEAD = Site("net.py", 12, 8), Site("net.py", 13, 8)
MET = [
    ParameterMet(parameter=1, name="net.hidden.weight", shape=(32, 2)),
    ParameterMet(parameter=2, name="net.head.weight", shape=(2, 32)),
]
READ = [TapeRead(reached=(1, 2)), *[OptimizerStepped(optimizer=1)] * 20, TapeRead(reached=(1, 2))]
JOINED = LayersJoined(first=1, second=2, width=32, site=HEAD, first_site=HIDDEN)


def test_two_layers_that_are_one_are_found_where_the_second_one_runs():
    (finding,) = judge(LayersWithoutActivation, [*MET, JOINED, JOINED, *READ])
    assert finding.primary.site == HEAD
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "no activation between `net.hidden` and `net.head`: they compute one linear layer"
    assert [mark.site for mark in finding.related] == [HIDDEN]
    assert "32 outputs" in finding.primary.label


def test_a_normalisation_between_them_is_named():
    joined = LayersJoined(first=1, second=2, width=32, normed=True, site=HEAD, first_site=HEAD)
    (finding,) = judge(LayersWithoutActivation, [*MET, joined, *READ])
    assert finding.primary.label.endswith("of `net.hidden`, normalised")
    assert finding.related == ()


def test_each_pair_is_a_finding():
    third = [ParameterMet(parameter=3, name="net.last.weight", shape=(2, 2)), LayersJoined(first=2, second=3, width=2)]
    assert len(judge(LayersWithoutActivation, [*MET, JOINED, *third, *READ])) == 2


def test_a_few_steps_show_no_failure():
    assert not judge(LayersWithoutActivation, [*MET, JOINED, *READ[:10], TapeRead(reached=(1, 2))])


def test_layers_with_an_activation_are_clear():
    run, rule = Progress(), LayersWithoutActivation()
    assert rule.unobserved(run) == "no readable autograd tape"
    for event in [*MET, *READ]:
        run.note(event)
        rule.observe(event, run)
    assert not rule.findings(run)
