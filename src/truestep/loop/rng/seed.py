"""Random numbers: one seed for all generators, their states in types that load safely, and a hash for single samples.

The randomness of a sample is a function of (seed, epoch, index), so it does not depend on workers or on earlier random
numbers. `mix` computes its seed: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)
over one number after the other. Of the result, the upper 32 bits are used, the most that numpy accepts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

try:
    import numpy as numpy
except ImportError:  # torch works without it
    numpy = None  # type: ignore[assignment]

State = dict[str, Any]

_ALL = 0xFFFFFFFFFFFFFFFF
_START = 0x9E3779B97F4A7C15


def _scramble(word: int) -> int:
    """Return splitmix64's output for a state of 64 bits: a bijection in which every bit depends on every other."""
    word = (word + _START) & _ALL
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _ALL
    return word ^ (word >> 31)


def mix(*numbers: int) -> int:
    """Return a 32-bit hash of integers, which depends on their order.

    Args:
        numbers: any integers, each taken modulo 2**64; usually (seed, epoch, index).

    Returns:
        An int in 0 ... 2**32 - 1.

    Example:
        >>> mix(42, 0, 7) == mix(42, 0, 7), mix(42, 0, 7) == mix(42, 7, 0)
        (True, False)
    """
    word = 0
    for number in numbers:
        word = _scramble(word ^ (number & _ALL))
    return word >> 32


def mix_each(*numbers: int, last: Iterable[int]) -> list[int]:
    """Return `mix(*numbers, index)` for every index; the common numbers are hashed once.

    Args:
        numbers: the common first numbers, usually (seed, epoch).
        last: the last numbers.

    Example:
        >>> mix_each(42, 0, last=[7, 8]) == [mix(42, 0, 7), mix(42, 0, 8)]
        True
    """
    word = 0
    for number in numbers:
        word = _scramble(word ^ (number & _ALL))
    return [_scramble(word ^ (index & _ALL)) >> 32 for index in last]


def seed_everything(seed: int) -> None:
    """Seed python's, numpy's and torch's global generators, including those of all devices.

    Args:
        seed: any integer; numpy, which accepts 32 bits, gets a hash of larger and negative ones.

    Example:
        >>> seed_everything(3)
        >>> first = random.random(), float(torch.rand(()))
        >>> seed_everything(3)
        >>> first == (random.random(), float(torch.rand(())))
        True
    """
    random.seed(seed)
    torch.manual_seed(seed & _ALL)
    if numpy is not None:
        numpy.random.seed(seed if 0 <= seed < 2**32 else mix(seed))


def rng_state() -> State:
    """Return the states of all global generators, in types that `torch.load(weights_only=True)` loads.

    Returns:
        A dict with "python", "torch", "numpy" if it is installed, and the type of the accelerator if there is one:
        "cuda", "xpu" (a list, one state per device), "mps".

    Example:
        >>> state = rng_state()
        >>> first = random.random(), float(torch.rand(()))
        >>> set_rng_state(state)
        >>> first == (random.random(), float(torch.rand(())))
        True
    """
    version, words, gauss = random.getstate()
    state: State = {
        "python": {"version": version, "words": torch.tensor(words), "gauss": gauss},
        "torch": torch.get_rng_state(),
    }
    if numpy is not None:
        state["numpy"] = _to_plain(numpy.random.get_state(legacy=False))
    kind, module = _accelerator()
    if module is not None and getattr(module, "is_initialized", _always)():
        of_each = getattr(module, "get_rng_state_all", None)
        state[kind] = module.get_rng_state() if of_each is None else of_each()
    return state


def set_rng_state(state: State) -> None:
    """Restore the states of the global generators.

    Args:
        state: return value of `rng_state`, also from a machine with other devices: states of devices that do not exist
            here are ignored, and generators without a state in it are unchanged.
    """
    python = state["python"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    torch.set_rng_state(state["torch"].cpu())
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(_from_plain(state["numpy"]))
    kind, module = _accelerator()
    if kind not in state:
        return
    if isinstance(state[kind], torch.Tensor):
        module.set_rng_state(state[kind].cpu())
    else:
        for device, own in enumerate(state[kind][: module.device_count()]):
            module.set_rng_state(own.cpu(), device)


def _accelerator() -> tuple[str, Any]:
    """Return the type of this machine's accelerator and its torch module; "" and None without an accelerator."""
    there = torch.accelerator.current_accelerator(check_available=True)
    return ("", None) if there is None else (there.type, torch.get_device_module(there))


def _always() -> bool:
    return True


def _to_plain(value: Any) -> Any:
    """Return numpy's state with each array as a tensor and the name of its dtype."""
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, numpy.ndarray):
        return {"words": torch.from_numpy(value.astype(numpy.uint64).view(numpy.int64)), "dtype": str(value.dtype)}
    return value.item() if isinstance(value, numpy.generic) else value


def _from_plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"words", "dtype"}:
        return value["words"].cpu().numpy().view(numpy.uint64).astype(value["dtype"])
    return {key: _from_plain(each) for key, each in value.items()}


@contextmanager
def borrowed(device: torch.device | None = None, *, restore: bool = True) -> Iterator[Callable[[int], None]]:
    """Context manager: yield `seed(n)` for all global generators, and restore their states on exit.

    Saving and restoring takes about 80 us, mostly for numpy; a call of `seed` about 7 us.

    Args:
        device: an accelerator with another generator to seed and restore.
        restore: False to skip saving and restoring, as in a loader's worker.

    Example:
        >>> before = random.getstate()
        >>> with borrowed() as seed:
        ...     seed(mix(42, 0, 7))
        ...     drawn = random.random()
        >>> random.getstate() == before
        True
    """
    generators = [torch.default_generator]
    if device is not None and device.type == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]
        index = torch.cuda.current_device() if device.index is None else device.index
        generators.append(torch.cuda.default_generators[index])
    other: Any = None
    if device is not None and device.type not in ("cpu", "cuda"):
        other = torch.get_device_module(device)
    seed_numpy = None if numpy is None else numpy.random.seed

    def seed(number: int) -> None:
        random.seed(number)
        for generator in generators:
            generator.manual_seed(number)
        if seed_numpy is not None:
            seed_numpy(number)
        if other is not None:
            other.manual_seed(number)

    if not restore:
        yield seed
        return
    python = random.getstate()
    states = [generator.get_state() for generator in generators]
    theirs = None if numpy is None else numpy.random.get_state(legacy=False)
    elsewhere = None if other is None else other.get_rng_state()
    try:
        yield seed
    finally:
        random.setstate(python)
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        if theirs is not None:
            numpy.random.set_state(theirs)
        if elsewhere is not None:
            other.set_rng_state(elsewhere)
