import pytest
import torch

from truestep.events import LearningRateRead, LossRead, OptimizerBuilt, OptimizerStepped, Site
from truestep.findings import Confidence
from truestep.lint import lint
from truestep.rules.optimizer_setting_out_of_range import OptimizerSettingOutOfRange
from truestep.testing import capture_events, judge

LINE = Site("train.py", 9, 0)


STEP = OptimizerStepped(optimizer=1, site=Site("train.py", 20, 0), observed=2, fresh=2)


def built(kind="SGD", weight_decay=0.0, optimizer=1, site=LINE, **settings):
    return OptimizerBuilt(
        optimizer=optimizer, kind=kind, weight_decay=weight_decay, settings=tuple(settings.items()), site=site
    )


def found(kind="SGD", weight_decay=0.0, **settings):
    return judge(OptimizerSettingOutOfRange, [built(kind, weight_decay, **settings), STEP])


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("Adam", {"beta1": 0.999, "beta2": 0.9}, "the betas of Adam are exchanged: 0.999 and 0.9"),
        ("AdamW", {"beta1": 0.99, "beta2": 0.9}, "the betas of AdamW are exchanged: 0.99 and 0.9"),
        ("Adam", {"beta1": 0.9, "beta2": 0.5}, "the betas of Adam are exchanged: 0.9 and 0.5"),
        ("Adam", {"beta1": 0.3, "beta2": 0.0}, "the betas of Adam are exchanged: 0.3 and 0"),
        ("SGD", {"momentum": 1e-4}, "the momentum of SGD is 0.0001"),
        ("SGD", {"momentum": 9.0}, "the momentum of SGD is 9"),
        ("RMSprop", {"alpha": 1.0, "momentum": 0.0}, "`alpha` of RMSprop is 1"),
        ("RMSprop", {"alpha": 1e-4, "momentum": 0.0}, "`alpha` of RMSprop is 0.0001"),
    ],
)
def test_settings_out_of_range_are_found(kind, settings, message):
    (finding,) = found(kind, **settings)
    assert (finding.message, finding.primary.site, finding.confidence) == (message, LINE, Confidence.HIGH)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Adam", {"beta1": 0.9, "beta2": 0.999}), ("Adam", {"beta1": 0.0, "beta2": 0.9}),
        ("AdamW", {"beta1": 0.95, "beta2": 0.95}), ("Adam", {"beta1": 0.95, "beta2": 0.9}),
        ("Adam", {"beta1": 0.98, "beta2": 0.95}), ("Adam", {"beta1": 0.0, "beta2": 0.0}),
        ("SGD", {"momentum": 0.0}), ("SGD", {"momentum": 0.99}),
        ("SGD", {"momentum": 0.02}), ("SGD", {"momentum": 0.004, "weight_decay": 1e-4}),
        ("RMSprop", {"alpha": 0.99, "momentum": 0.0}), ("RMSprop", {"alpha": 0.5}),
        ("RMSprop", {"alpha": 1e-3, "weight_decay": 1e-4}), ("Adafactor", {}),
    ],
)  # fmt: skip
def test_settings_in_their_range_are_quiet(kind, settings):
    assert found(kind, **settings) == []


def test_an_optimizer_without_a_step_is_quiet():
    assert judge(OptimizerSettingOutOfRange, [built(momentum=1e-4)]) == []
    assert judge(OptimizerSettingOutOfRange, [built(momentum=1e-4), built(optimizer=2, momentum=0.0), STEP]) != []


def test_a_weight_decay_of_biases_alone_is_found():
    made = OptimizerBuilt(optimizer=1, kind="AdamW", decay_of_vectors=0.01, site=LINE)
    (finding,) = judge(OptimizerSettingOutOfRange, [made, STEP])
    assert finding.message == "biases have a weight decay of 0.01, and matrices have none"
    tried = OptimizerBuilt(optimizer=2, kind="AdamW", weight_decay=0.1, site=LINE)
    assert judge(OptimizerSettingOutOfRange, [tried, made, STEP]) == []
    assert judge(OptimizerSettingOutOfRange, [made]) == []


def test_settings_that_change_are_those_of_a_schedule():
    def read(momentum):
        return LearningRateRead(optimizer=1, rates=(0.1,), settings=(("momentum", momentum),))

    tiny = built(momentum=1e-3)
    assert judge(OptimizerSettingOutOfRange, [tiny, read(0.9), STEP]) == []
    assert judge(OptimizerSettingOutOfRange, [tiny, read(1e-3), STEP, read(1e-3), STEP, read(0.05), STEP]) == []
    assert len(judge(OptimizerSettingOutOfRange, [tiny, read(1e-3), STEP, read(1e-3), STEP])) == 1


def test_a_line_that_tries_settings_is_quiet():
    tiny, usual = built(momentum=1e-3), built(momentum=0.9, optimizer=2)
    assert judge(OptimizerSettingOutOfRange, [usual, tiny, STEP]) == []
    assert judge(OptimizerSettingOutOfRange, [tiny, STEP, usual]) == []
    other = built(momentum=0.9, optimizer=2, site=Site("train.py", 10, 0))
    without, again = built(momentum=0.0, optimizer=2), built(momentum=1e-3, optimizer=2)
    for second in (other, without, again):
        assert len(judge(OptimizerSettingOutOfRange, [tiny, STEP, second])) == 1
    swapped, betas = built("Adam", beta1=0.999, beta2=0.9), built("Adam", optimizer=2, beta1=0.9, beta2=0.999)
    assert judge(OptimizerSettingOutOfRange, [swapped, STEP, betas]) == []
    assert len(judge(OptimizerSettingOutOfRange, [swapped, STEP, usual])) == 1


def decaying(kind, decay, losses=(2.31, 2.3), parameters=4, lr=1e-3, other=0.0):
    made = OptimizerBuilt(
        optimizer=1, kind=kind, weight_decay=decay, lr=lr, parameters=tuple(range(parameters)),
        settings=(("momentum", 0.0),), site=LINE,
    )  # fmt: skip
    reads = [LossRead(value=value, site=LINE) for value in losses]
    before = [OptimizerBuilt(optimizer=2, kind=kind, weight_decay=other, site=LINE)] if other else []
    return judge(OptimizerSettingOutOfRange, [*before, made, *[STEP] * 60, *reads])


def test_a_weight_decay_that_removes_the_weights_is_found():
    (finding,) = decaying("SGD", 0.9)
    assert finding.message == "the weight decay of SGD is 0.9, and the loss has not fallen"
    assert finding.confidence is Confidence.MEDIUM
    assert len(decaying("AdamW", 100)) == 1


@pytest.mark.parametrize(
    "quiet",
    [
        {"decay": 0.1}, {"losses": (2.31, 2.1, 2.3)}, {"other": 1e-3}, {"losses": (-1.0, -0.9)}, {"losses": ()},
        {"parameters": 2}, {"kind": "AdamW", "decay": 1.0},
    ],
)  # fmt: skip
def test_a_weight_decay_is_quiet_if_the_loss_falls_or_the_weights_stay(quiet):
    assert decaying(**{"kind": "SGD", "decay": 0.9} | quiet) == []


def test_settings_of_optimizers_of_torch_are_read():
    def settings(make):
        with capture_events() as events:
            make([torch.nn.Parameter(torch.zeros(2))])
        (built,) = [event for event in events if isinstance(event, OptimizerBuilt)]
        return dict(built.settings)

    assert settings(lambda p: torch.optim.Adam(p, betas=(0.8, 0.9))) == {"beta1": 0.8, "beta2": 0.9}
    assert settings(lambda p: torch.optim.SGD(p, 0.1, 1e-4)) == {"momentum": 1e-4}
    assert settings(lambda p: torch.optim.ASGD(p, alpha=1.0)) == {}
    assert settings(lambda p: torch.optim.RMSprop(p, alpha=0.9)) == {"momentum": 0.0, "alpha": 0.9}

    class Own(torch.optim.Adam):
        pass

    assert settings(lambda p: Own(p, betas=(0.999, 0.9))) == {}


def test_settings_are_read_again_at_steps():
    weight = torch.nn.Parameter(torch.zeros(2))
    with capture_events() as events:
        optimizer = torch.optim.SGD([weight], 0.1, 1e-3)
        for step in range(3):
            optimizer.param_groups[0]["momentum"] = 0.3 * step
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
    read = [dict(event.settings)["momentum"] for event in events if isinstance(event, LearningRateRead)]
    assert read[:3] == [0.0, 0.3, 0.6]


HEAD = "import torch\nfrom torch import optim\n"


@pytest.mark.parametrize(
    "line",
    [
        "opt = optim.Adam(net.parameters(), lr=1e-3, betas=(0.999, 0.9))",
        "opt = torch.optim.AdamW(net.parameters(), 1e-3, (0.99, 0.9))",
        "opt = optim.SGD(net.parameters(), 0.1, 1e-4)",
        "decay = 5e-4\nopt = optim.SGD(net.parameters(), 0.1, decay)",
        "opt = optim.SGD(net.parameters(), lr=0.1, momentum=9)",
        "opt = optim.RMSprop(net.parameters(), 1e-3, 1e-5)",
    ],
)
def test_settings_are_found_in_the_source(line):
    assert [one.rule for one in lint(HEAD + line)] == ["optimizer-setting-out-of-range"]


@pytest.mark.parametrize(
    "line",
    [
        "opt = optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.999))",
        "opt = optim.Adam(net.parameters(), lr=1e-3, betas=(b1, 0.9))",
        "opt = optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=1e-4)",
        "opt = optim.SGD(net.parameters(), lr=0.1, momentum=1e-3, weight_decay=args.decay)",
        "opt = optim.SGD(net.parameters(), 0.1, args.momentum)",
        "opt = optim.SGD(net.parameters(), **settings)",
        "opt = optim.RMSprop(net.parameters(), 1e-3, 0.9)",
        "opt = optim.Adam(net.parameters(), 1e-3, (0.95, 0.9))",
        "opt = optim.SGD(net.parameters(), 0.1, 1e-3)\nfor group in opt.param_groups:\n    group['momentum'] = 0.9",
        "opt = optim.SGD(net.parameters(), 0.1, 1e-3)\nplan = optim.lr_scheduler.OneCycleLR(opt, 0.1, 90)",
    ],
)
def test_usual_settings_are_quiet_in_the_source(line):
    assert [one.rule for one in lint(HEAD + line)] == []
