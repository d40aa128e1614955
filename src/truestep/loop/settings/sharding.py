"""Checks of the settings that belong to `strategy="fsdp"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep.errors import BadSettings

if TYPE_CHECKING:
    from truestep.loop.settings.settings import Settings


def check_sharding(settings: Settings) -> None:
    """Raise an error if a setting of divided parameters is invalid, or another one excludes it.

    Raises:
        BadSettings: an unknown type, a strategy without divided parameters, or fp16.
    """
    for name in ("param_dtype", "reduce_dtype"):
        value = getattr(settings, name)
        if value not in ("fp32", "bf16"):
            raise BadSettings(f'{name} must be "fp32" or "bf16", got {value!r}', remedy=f"leave {name} out for fp32")
    changed = {
        "param_dtype": settings.param_dtype != "fp32",
        "reduce_dtype": settings.reduce_dtype != "fp32",
        "cpu_offload": settings.cpu_offload,
    }
    given = [name for name, one in changed.items() if one]
    if given and settings.strategy != "fsdp":
        raise BadSettings(
            f'{given[0]} was given with strategy="{settings.strategy}"',
            expected='expected strategy="fsdp", which divides the parameters over the ranks',
            remedy='pass strategy="fsdp", or precision="bf16" for automatic mixed precision',
        )
    if given and settings.precision in ("fp16", "fp16-mixed", "16-mixed"):
        raise BadSettings(
            f'{given[0]} was given with precision="{settings.precision}", which scales losses',
            expected='expected precision="auto", "fp32" or "bf16"',
            remedy='pass precision="bf16"',
        )
