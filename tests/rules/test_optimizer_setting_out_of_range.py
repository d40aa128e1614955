import pytest
import torch

from truestep.events import OptimizerBuilt, Site
from truestep.findings import Confidence
from truestep.lint import lint
from truestep.rules.optimizer_setting_out_of_range import OptimizerSettingOutOfRange
from truestep.testing import capture_events, judge

LINE = Site("train.py", 9, 0)


def found(kind="SGD", weight_decay=0.0, **settings):
    built = OptimizerBuilt(
        optimizer=1, kind=kind, weight_decay=weight_decay, settings=tuple(settings.items()), site=LINE
    )
    return judge(OptimizerSettingOutOfRange, [built])


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("Adam", {"beta1": 0.999, "beta2": 0.9}, "the betas of Adam are exchanged: 0.999 and 0.9"),
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
        ("AdamW", {"beta1": 0.95, "beta2": 0.95}), ("SGD", {"momentum": 0.0}), ("SGD", {"momentum": 0.99}),
        ("SGD", {"momentum": 0.02}), ("SGD", {"momentum": 0.004, "weight_decay": 1e-4}),
        ("RMSprop", {"alpha": 0.99, "momentum": 0.0}), ("RMSprop", {"alpha": 0.5}), ("Adafactor", {}),
    ],
)  # fmt: skip
def test_settings_in_their_range_are_quiet(kind, settings):
    assert found(kind, **settings) == []


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
    ],
)
def test_usual_settings_are_quiet_in_the_source(line):
    assert [one.rule for one in lint(HEAD + line)] == []
