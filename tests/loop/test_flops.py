"""Operations are counted without touching the model, and peaks are those of known devices only."""

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadPart
from truestep.loop.log.flops import PEAKS, peak_flops, peak_of


def counted(model, *inputs, **options):
    return Run(device="cpu", watch=False, progress=False).count_flops(model, *inputs, **options)


def test_a_linear_layer_has_two_operations_for_a_weight_and_three_passes():
    assert counted(nn.Linear(100, 10), torch.ones(8, 100)) == 3 * 2 * 100 * 10


def test_a_convolution_is_counted():
    model = nn.Conv2d(3, 8, 3, padding=1)
    assert counted(model, torch.ones(4, 3, 16, 16)) == 3 * 2 * (3 * 3 * 3) * 8 * 16 * 16


def test_counting_changes_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.randn(3)
    torch.manual_seed(0)
    counted(model, torch.ones(8, 4))
    assert torch.equal(torch.randn(3), expected)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.device.type == "cpu" for parameter in model.parameters())
    assert model.training


def test_arguments_by_name_and_tokens_are_counted():
    assert counted(nn.Embedding(10, 4), torch.zeros(2, 3, dtype=torch.long)) == 0

    class Named(nn.Linear):
        def forward(self, *, features):
            return super().forward(features["x"])

    assert counted(Named(3, 2), features={"x": torch.ones(5, 3)}) == 3 * 2 * 6


def test_a_model_that_reads_values_is_refused():
    class Reads(nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum().item() > 0 else x

    with pytest.raises(BadPart, match="Reads cannot be called on the meta device"):
        counted(Reads(3, 3), torch.ones(2, 3))


def test_a_call_without_a_batch_is_refused():
    with pytest.raises(BadPart, match="needs a batch"):
        counted(nn.Linear(3, 3))


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-PCIE-40GB", "A100"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_known_devices(name, peak):
    assert peak_of(name, "bf16") == PEAKS[peak][0]
    assert peak_of(name, "fp32", tf32=True) == PEAKS[peak][1]
    assert peak_of(name, "fp32") == PEAKS[peak][2]


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA A100X",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "Quadro T400",
        "",
    ],
)
def test_devices_that_only_sound_alike_are_not_known(name):
    assert peak_of(name, "bf16") is None


def test_the_cpu_has_no_peak():
    assert peak_flops(torch.device("cpu"), "fp32") is None
