"""layer-setting-out-of-range: arguments at the wrong place, and settings meant for other frameworks."""

import pytest
from torch import nn

from truestep.events import LayerSettingRead, ModelCalled, ModelMet, Site
from truestep.findings import Confidence
from truestep.rules.layer_setting_out_of_range import LayerSettingOutOfRange
from truestep.testing import capture_events, judge

MADE, CALLED = Site("train.py", 12, 8), Site("train.py", 30, 8)
NET = ModelMet(model=1, name="net", parameters=(1, 2), site=CALLED)


def read(setting="eps", value="16", kind="BatchNorm2d", site=MADE):
    return LayerSettingRead(model=1, layer="b3.4", kind=kind, setting=setting, value=value, site=site)


def test_a_number_of_channels_for_an_epsilon():
    (finding,) = judge(LayerSettingOutOfRange, [NET, read()])
    assert finding.message == "`eps` of a BatchNorm2d is 16"
    assert finding.primary.site == MADE
    assert finding.related[0].site == CALLED
    assert finding.confidence is Confidence.HIGH


def test_layers_of_one_line_are_one_finding():
    (finding,) = judge(LayerSettingOutOfRange, [NET, read(), read()])
    assert finding.seen.count == 2


def test_the_momentum_of_other_frameworks_is_less_certain():
    (finding,) = judge(LayerSettingOutOfRange, [NET, read("momentum", "0.99")])
    assert finding.confidence is Confidence.MEDIUM


def test_a_model_without_such_layers_is_quiet():
    assert judge(LayerSettingOutOfRange, [NET, ModelCalled(model=1, site=CALLED)]) == []


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Leave the files of other tests out of the program, which is searched for the lines of the layers."""
    monkeypatch.setattr("truestep.probes.context.sites.Sites.own_files", lambda sites: [__file__])


def settings(*layers):
    import torch

    model = nn.Sequential(nn.Linear(4, 4), *layers)
    with capture_events() as events:
        model(torch.randn(8, 4))
    return [(one.kind, one.setting, one.value) for one in events if isinstance(one, LayerSettingRead)]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.BatchNorm1d(4, 4), ("BatchNorm1d", "eps", "4")),
        (nn.BatchNorm1d(4, 0.8), ("BatchNorm1d", "eps", "0.8")),
        (nn.LayerNorm(4, 4), ("LayerNorm", "eps", "4")),
        (nn.BatchNorm1d(4, momentum=0.99), ("BatchNorm1d", "momentum", "0.99")),
        (nn.LeakyReLU(True), ("LeakyReLU", "negative_slope", "True")),
        (nn.Dropout(True), ("Dropout", "p", "True")),
    ],
    ids=str,
)
def test_each_setting(layer, expected):
    assert settings(layer) == [expected]


def test_settings_in_use_are_quiet():
    usual = [nn.BatchNorm1d(4, 1e-2, None), nn.BatchNorm1d(4, momentum=1.0), nn.BatchNorm1d(4, momentum=0.0)]
    assert settings(*usual, nn.LeakyReLU(0.3), nn.Dropout(0.9), nn.GroupNorm(2, 4), nn.LayerNorm(4, 1e-12)) == []


def test_the_line_that_makes_the_layer_is_found():
    import torch

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.InstanceNorm1d(4)
            self.other = nn.InstanceNorm1d(4, 4)  # here

        def forward(self, x):
            return self.other(self.norm(x))

    with capture_events() as events:
        nn.Sequential(nn.Conv1d(4, 4, 1), Net())(torch.randn(2, 4, 5))
    (event,) = [one for one in events if isinstance(one, LayerSettingRead)]
    with open(__file__, encoding="utf-8") as file:
        assert event.site.line == next(n for n, line in enumerate(file, 1) if line.rstrip().endswith("# here"))
