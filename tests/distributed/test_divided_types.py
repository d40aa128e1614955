"""Divided parameters that are gathered or averaged in bf16, or kept on the CPU, next to strategy="ddp"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from several_ranks import warm_ranks

from truestep import Settings
from truestep.errors import BadSettings

PROGRAM = Path(__file__).parent / "programs" / "divided_types.py"
Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    code, out, err = warm_ranks([str(PROGRAM)], tmp_path_factory.mktemp("types"))
    assert (code, err) == (0, "")
    return json.loads(out)  # type: ignore[no-any-return]


@pytest.mark.program
@pytest.mark.parametrize(("case", "other"), [("offloaded", "ddp"), ("windows offloaded", "windows of ddp")])
def test_parts_on_the_cpu_train_the_weights_of_ddp(results: Results, case: str, other: str) -> None:
    assert results[case]["weights"] == pytest.approx(results[other]["weights"], abs=1e-6)


IN_BF16 = {
    "bf16": "ddp",
    "bf16 everywhere": "ddp",
    "sums in bf16": "ddp",
    "windows in bf16": "windows of ddp",
    "windows that are left": "windows that ddp leaves",
}


@pytest.mark.program
@pytest.mark.parametrize("case", IN_BF16)
def test_bf16_trains_as_well_as_ddp_in_fp32(results: Results, case: str) -> None:
    found, other = results[case], results[IN_BF16[case]]
    assert found["weights"] != other["weights"], "computed in another type"
    assert found["loss"] == pytest.approx(other["loss"], abs=0.03)
    assert found["accuracy"] == pytest.approx(other["accuracy"], abs=0.03)
    assert found["steps"] == other["steps"]


@pytest.mark.program
@pytest.mark.parametrize("case", IN_BF16)
def test_parts_their_moments_and_results_stay_fp32(results: Results, case: str) -> None:
    assert results[case]["stored"] == ["torch.float32"]
    assert results[case]["output"] == "torch.float32"


@pytest.mark.program
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"param_dtype": "fp16"}, 'param_dtype must be "fp32" or "bf16", got \'fp16\''),
        ({"reduce_dtype": 16}, 'reduce_dtype must be "fp32" or "bf16", got 16'),
        ({"param_dtype": "bf16", "strategy": "ddp"}, 'param_dtype was given with strategy="ddp"'),
        ({"cpu_offload": True, "strategy": "auto"}, 'cpu_offload was given with strategy="auto"'),
        ({"reduce_dtype": "bf16", "precision": "fp16"}, 'reduce_dtype was given with precision="fp16"'),
    ],
)
def test_settings_that_exclude_each_other_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSettings) as raised:
        Settings(**{"strategy": "fsdp"} | settings)
    assert str(raised.value).startswith(message)
