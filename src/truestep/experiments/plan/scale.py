"""Communication, memory and checkpoints of a training on many devices, from its number of parameters.

Every formula is one function, which the tables of `docs/explanation/scale.md` call. Sizes are bytes, times seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

VALUE_BYTES = MappingProxyType({"fp32": 4, "bf16": 2})
"""Bytes of a value, by precision of the parameters. Autocast leaves parameters, gradients and state in fp32."""
STATE_VALUES = MappingProxyType({"SGD": 0, "SGD with momentum": 1, "RMSprop": 1, "Adam": 2, "AdamW": 2})
"""Values of state per parameter, by optimizer of torch. They have the type of the parameter."""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between devices.

    Attributes:
        name: name and generation.
        bytes_per_second: rate in one direction, for each device.
        source: the published figure, and its publisher.
    """

    name: str
    bytes_per_second: float
    source: str


LINKS = (
    Link("NVLink 4 (H100)", 450e9, "NVIDIA H100 data sheet: 900 GB/s, the sum of both directions"),
    Link("NVLink 3 (A100)", 300e9, "NVIDIA A100 data sheet: 600 GB/s, the sum of both directions"),
    Link("PCIe 5.0 x16", 63e9, "PCI-SIG: 32 GT/s per lane, 128b/130b coding, 16 lanes: 63 GB/s in each direction"),
    Link("InfiniBand NDR 400 Gb/s", 50e9, "NVIDIA ConnectX-7 data sheet: 400 Gb/s in each direction"),
    Link("Ethernet 100 Gb/s", 12.5e9, "IEEE 802.3: 100 Gb/s in each direction"),
)


def state_bytes(parameters: float, optimizer: str = "AdamW", precision: str = "fp32") -> float:
    """Return the bytes of the optimizer state alone.

    Args:
        parameters: number of parameters.
        optimizer: key of `STATE_VALUES`.
        precision: key of `VALUE_BYTES`.

    >>> state_bytes(7e9) / 1e9
    56.0
    """
    return parameters * STATE_VALUES[optimizer] * VALUE_BYTES[precision]


def training_bytes(parameters: float, optimizer: str = "AdamW", precision: str = "fp32") -> float:
    """Return the bytes of parameters, gradients and optimizer state, without activations.

    >>> training_bytes(7e9) / 1e9
    112.0
    """
    return 2 * parameters * VALUE_BYTES[precision] + state_bytes(parameters, optimizer, precision)


def sharded_bytes(parameters: float, devices: int, optimizer: str = "AdamW", precision: str = "fp32") -> float:
    """Return the bytes of parameters, gradients and optimizer state on one device under FSDP2, without gathered blocks.

    >>> sharded_bytes(7e9, 8) / 1e9
    14.0
    """
    return training_bytes(parameters, optimizer, precision) / devices


def checkpoint_bytes(parameters: float, optimizer: str = "AdamW", precision: str = "fp32") -> float:
    """Return the bytes of a checkpoint: parameters and optimizer state.

    >>> checkpoint_bytes(7e9) / 1e9
    84.0
    """
    return parameters * VALUE_BYTES[precision] + state_bytes(parameters, optimizer, precision)


def all_reduce_bytes(size: float, devices: int) -> float:
    """Return the bytes that each device sends in a ring all-reduce of `size` bytes, such as the gradients of a step.

    >>> all_reduce_bytes(1.4e9, 4) / 1e9
    2.1
    """
    return 2 * (devices - 1) / devices * size


def fsdp_bytes(size: float, devices: int) -> float:
    """Return the bytes that each device sends in a step of FSDP2.

    Parameters are gathered for the forward and again for the backward pass, and gradients are reduced to their parts.

    Args:
        size: bytes of all parameters in the precision of the exchange.
        devices: number of devices.

    >>> fsdp_bytes(28e9, 8) / 1e9
    73.5
    """
    return 3 * (devices - 1) / devices * size


def exposed_s(exchange_s: float, hidden_behind_s: float, last_s: float = 0.0) -> float:
    """Return the seconds of an exchange that computation does not hide.

    Args:
        exchange_s: seconds of the whole exchange.
        hidden_behind_s: seconds of the computation beside it, such as the backward pass.
        last_s: seconds of its last part, which begins when the computation has ended: the last bucket of
            DistributedDataParallel.

    >>> exposed_s(0.5, 0.25), exposed_s(0.1, 0.25), exposed_s(0.1, 0.25, 0.01)
    (0.25, 0.0, 0.01)
    """
    return max(last_s, exchange_s - hidden_behind_s)


def tokens_to_hide(bytes_per_parameter: float, flops_per_second: float, bytes_per_second: float) -> float:
    """Return the tokens per device and step from which computation takes longer than communication.

    A step of a transformer computes 6 operations per parameter and token, a third of them in the forward pass. Both are
    proportional to the number of parameters, so it is the same
    for all models.

    Args:
        bytes_per_parameter: bytes sent per parameter and step.
        flops_per_second: operations that a device reaches.
        bytes_per_second: rate of the link of a device.

    >>> round(tokens_to_hide(6.0, 400e12, 50e9))
    8000
    """
    return bytes_per_parameter / bytes_per_second * flops_per_second / 6


def save_interval_s(save_s: float, between_failures_s: float) -> float:
    """Return the time between two checkpoints that loses least: to writing, and to steps repeated after a failure.

    Source: Young, A first order approximation to the optimum checkpoint interval (1974).

    >>> save_interval_s(50.0, 10_000.0)
    1000.0
    """
    return math.sqrt(2 * save_s * between_failures_s)


def speedup(devices: int, step_s: float, exposed: float) -> float:
    """Return the samples per second on several devices, relative to one device with the same batch.

    Args:
        devices: number of devices.
        step_s: seconds of a step on one device.
        exposed: seconds of communication in a step that computation does not hide.

    >>> speedup(4, 1.0, 0.25)
    3.2
    """
    return devices * step_s / (step_s + exposed)


def exposed_for(devices: int, step_s: float, gained: float) -> float:
    """Return the seconds of each step that are lost, if several devices gain a given factor.

    >>> exposed_for(4, 1.0, 3.2)
    0.25
    """
    return devices * step_s / gained - step_s
