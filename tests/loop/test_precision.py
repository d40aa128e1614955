"""The names of precisions, the choice of "auto", and the switches that are restored."""

import subprocess
import sys

import pytest
import torch

from truestep.errors import UnknownPrecision
from truestep.loop.optim import precision as module
from truestep.loop.optim.precision import Precision


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("fp32", "fp32"),
        ("32", "fp32"),
        ("32-true", "fp32"),
        ("bf16", "bf16"),
        ("bf16-mixed", "bf16"),
        ("fp16", "fp16"),
        ("16-mixed", "fp16"),
        ("fp16-mixed", "fp16"),
    ],
)
def test_names_of_other_projects_are_understood(name, chosen):
    precision = Precision(name)
    assert (precision.name, precision.reason) == (chosen, "")
    assert (precision.new_scaler() is not None) is (chosen == "fp16")


@pytest.mark.parametrize(
    ("device", "native", "chosen"),
    [("cpu", True, "fp32"), ("mps", True, "fp32"), ("cuda", True, "bf16"), ("cuda", False, "fp16")],
)
def test_auto_chooses_by_device_and_says_why(monkeypatch, device, native, chosen):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: native or including_emulation)
    name, reason = module._chosen("auto", torch.device(device))
    assert name == chosen
    assert reason


@pytest.mark.parametrize("name", ["fp8", "", "FP16", "64"])
def test_an_unknown_precision_is_named_with_one_that_works_here(name):
    with pytest.raises(UnknownPrecision) as raised:
        Precision(name)
    assert str(raised.value).splitlines() == [
        f'"{name}" is not a precision',
        '  expected one of "auto", "fp32", "bf16", "fp16"',
        '  use "fp32" on this CPU',
    ]


def test_the_remedy_is_true_for_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    with pytest.raises(UnknownPrecision, match='use "bf16" on this GPU'):
        Precision("fp8", "cuda")


def test_every_optimizer_gets_a_scaler_of_its_own():
    precision = Precision("fp16")
    assert precision.new_scaler() is not precision.new_scaler()


def test_fp32_computes_in_fp32_and_enters_nothing():
    precision = Precision("fp32")
    assert precision.autocast() is precision.autocast()
    with precision.autocast():
        with precision.autocast():
            assert not torch.is_autocast_enabled("cpu")
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_autocast_nests_and_ends_also_when_the_body_raises():
    precision = Precision("bf16")
    with pytest.raises(ZeroDivisionError):
        with precision.autocast():
            with precision.autocast():
                assert torch.get_autocast_dtype("cpu") == torch.bfloat16
            assert torch.is_autocast_enabled("cpu")
            raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


# torch 2.8 has the older switch only.
MATMULS = [getattr(backend, "matmul", None) for backend in (torch.backends.cuda, torch.backends.mkldnn)]
NEWER = [matmul for matmul in MATMULS if hasattr(matmul, "fp32_precision")]
needs_the_newer_switch = pytest.mark.skipif(not NEWER, reason="this torch has the older switch only")


def switches():
    newer = [matmul.fp32_precision for matmul in NEWER]
    return [torch.get_float32_matmul_precision(), *newer, torch.backends.cuda.matmul.allow_tf32]


@pytest.fixture
def legacy():
    """Restore the switches after each test."""
    before = [matmul.fp32_precision for matmul in NEWER]
    yield
    torch.set_float32_matmul_precision("highest")
    for matmul, value in zip(NEWER, before, strict=True):
        matmul.fp32_precision = value


def test_tf32_is_on_until_closed_and_all_switches_are_put_back(monkeypatch, legacy):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    before = switches()
    with Precision("fp32") as precision:
        assert torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "high"
    assert switches() == before
    precision.close()
    assert switches() == before


def test_tf32_is_left_off_where_it_is_refused_or_not_there_or_not_fp32(monkeypatch, legacy):
    Precision("fp32")
    assert not torch.backends.cuda.matmul.allow_tf32
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    Precision("fp32", tf32=False)
    Precision("bf16")
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_precision_of_products_that_the_user_chose_is_kept(monkeypatch, legacy):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    torch.set_float32_matmul_precision("medium")
    with Precision("fp32"):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == "medium"


@needs_the_newer_switch
@pytest.mark.parametrize(("chosen", "during"), [("ieee", "tf32"), ("tf32", "tf32")])
def test_the_newer_switch_is_used_where_the_program_uses_it(monkeypatch, legacy, chosen, during):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with pytest.raises(RuntimeError, match="mix of the legacy and new APIs"):
        torch.get_float32_matmul_precision()
    torch.backends.cuda.matmul.fp32_precision = chosen
    with Precision("fp32"):
        assert torch.backends.cuda.matmul.fp32_precision == during
    assert torch.backends.cuda.matmul.fp32_precision == chosen


@pytest.mark.parametrize(("capability", "there"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_tf32_is_there_since_ampere(monkeypatch, capability, there):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert module._has_tf32(torch.device("cuda")) is there
    assert not module._has_tf32(torch.device("cpu"))


NEWER_SWITCH = """
import torch
from truestep.loop.log.flops import PEAKS, peak_flops
torch.cuda.get_device_name = lambda device: "NVIDIA H100 80GB HBM3"
half, tensor, plain = PEAKS["H100"]
assert peak_flops(torch.device("cuda"), "fp32") == plain
torch.backends.cuda.matmul.fp32_precision = "tf32"  # from now on torch refuses to read the older switch
assert peak_flops(torch.device("cuda"), "fp32") == tensor
assert peak_flops(torch.device("cuda"), "bf16") == half
"""


@needs_the_newer_switch
def test_the_peak_in_tf32_is_known_by_either_of_torchs_switches():
    subprocess.run([sys.executable, "-c", NEWER_SWITCH], check=True, timeout=600)
