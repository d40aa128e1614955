"""Random numbers: one seed for all generators, their states in types that load safely, and a hash for single samples.

A sample's randomness is a function of (seed, epoch, index), so it depends neither on workers nor on what was drawn
before. `mix` makes that function: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)
over one number after the other, of which the upper 32 bits are kept, because numpy takes no more.
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
    """Return a hash of 32 bits of whole numbers in their order.

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
    """Return `mix(*numbers, index)` for every index, without hashing what they share again.

    Args:
        numbers: what the hashes begin with; usually (seed, epoch).
        last: the number that differs.

    Example:
        >>> mix_each(42, 0, last=[7, 8]) == [mix(42, 0, 7), mix(42, 0, 8)]
        True
    """
    word = 0
    for number in numbers:
        word = _scramble(word ^ (number & _ALL))
    return [_scramble(word ^ (index & _ALL)) >> 32 for index in last]


def seed_everything(seed: int) -> None:
    """Seed python's, numpy's and torch's global generators, those of all devices included.

    Args:
        seed: any integer; numpy, which takes 32 bits, gets a hash of larger and of negative ones.

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
        A dict with "python", "torch" and, where they exist, "numpy" and the kind of the accelerator: "cuda", "xpu" (a
        list, one per device), "mps".

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
    """Put the global generators back into states that `rng_state` returned.

    Args:
        state: what `rng_state` returned, also on a machine with other devices: those that are not here are left out,
            those that it does not name stay as they are.
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
    """Return the kind of this machine's accelerator and torch's module of it; "" and None where there is none."""
    there = torch.accelerator.current_accelerator(check_available=True)
    return ("", None) if there is None else (there.type, torch.get_device_module(there))


def _always() -> bool:
    return True


def _to_plain(value: Any) -> Any:
    """Return numpy's state with its arrays as tensors beside the name of their type."""
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
    """Lend the global generators: give a function that seeds them, and put their states back afterwards.

    Saving and putting back costs about 80 us, mostly numpy's; a call of the function about 7 us.

    Args:
        device: an accelerator whose generator is lent too.
        restore: False where nobody cares for the states afterwards, as in a loader's worker.

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
