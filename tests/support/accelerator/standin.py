"""A device other than the CPU, on a machine without one: importing this module registers the device "standin".

Its tensors are ordinary tensors of torch's PrivateUse1 backend, in the memory of the process. Every operator on them
reaches `_on_device`, which runs the CPU's kernel on the same memory. Autograd, modules and optimizers are therefore
torch's own, values are those of the CPU to the last bit, and every read by the host passes through here and is noted.
The device is registered for the whole process: import this in a process started for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "standin"
_CPU, _EXTENSION = 1, 12  # device types of DLPack
_CPU_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
_PACKAGES = (str(Path(torch.__file__).parent), __file__)


@dataclass
class Seen:
    """Requests of the host to the device.

    Attributes:
        operators: computations, allocations and copies, in order.
        waits: operators that the host waited for, each with the lines that asked, innermost last.
    """

    operators: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


class Device:
    """The module `torch.standin`, as `torch.cuda` is one."""

    def __init__(self) -> None:
        self.generator = torch.Generator()
        self.seen = Seen()
        self.capturing = self.failing = self.full = False
        self.queued = False
        """Whether the program has given the device work that takes long, and no one has waited for it."""
        self.held_up: list[str] = []
        """Waits that such work held up."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def manual_seed(self, seed: int) -> None:
        self.generator.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return self.generator.get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        self.generator.set_state(state)

    def synchronize(self, device: Any = None) -> None:
        self.wait("synchronize")

    def wait(self, what: str) -> None:
        """Let the host wait for the device.

        Raises:
            RuntimeError: a graph is being captured.
            AcceleratorError: the device has failed.
        """
        if self.capturing:
            raise RuntimeError("operation not permitted when stream is capturing")
        if self.failing:
            raise torch.AcceleratorError("device-side assert")
        asked = _asked(what)
        self.seen.waits.append(asked)
        if self.queued:
            self.held_up.append(asked)
        self.queued = False


def _frames() -> list[traceback.FrameSummary]:
    """Return the lines that led here, without those of torch and of the device."""
    return [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_PACKAGES)]


def _asked(what: str) -> str:
    """Return an operator with the lines that led to it."""
    return f"{what} from " + " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in _frames()[-4:])


def _asked_by_truestep() -> bool:
    return any("/truestep/" in frame.filename for frame in _frames()[-1:])


class _Head(ctypes.Structure):
    """The beginning of a DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("index", ctypes.c_int32)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _lend(tensor: torch.Tensor, kind: int) -> torch.Tensor:
    """Return a tensor over the same memory that lies on the other device."""
    capsule = torch._C._to_dlpack(tensor.resolve_conj().resolve_neg())
    head = _Head.from_address(_pointer(capsule, b"dltensor"))
    head.type, head.index = kind, 0
    return torch._C._from_dlpack(capsule)


def _down(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _lend(value, _CPU) if value.device.type == NAME else value
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == NAME else value
    if isinstance(value, dict):
        return {name: _down(one) for name, one in value.items()}
    return type(value)(map(_down, value)) if isinstance(value, list | tuple) else value


def _up(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _lend(value, _EXTENSION)
    return type(value)(map(_up, value)) if isinstance(value, list | tuple) else value


@contextlib.contextmanager
def _drawing(op: Any) -> Iterator[None]:
    """Let an operator that draws draw from the generator of the device, as on an accelerator."""
    if torch.Tag.nondeterministic_seeded not in op.tags:
        yield
        return
    kept = torch.default_generator.get_state()
    torch.default_generator.set_state(device.generator.get_state())
    try:
        yield
    finally:
        device.generator.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(kept)


def _waits(op: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Whether the host has to wait for the device, as it would on CUDA."""
    if name == "aten._copy_from.default":
        across = args[0].device != args[1].device
        return across and not (len(args) > 2 and args[2])  # unless non_blocking, both ways
    if name.startswith(("aten.index.Tensor", "aten._index_put_impl_")):
        return any(isinstance(one, torch.Tensor) and one.dtype in (torch.bool, torch.uint8) for one in args[1])
    of_values = torch.Tag.data_dependent_output in op.tags or torch.Tag.dynamic_output_shape in op.tags
    return of_values or any(str(value.type) in ("bool", "Scalar", "number") for value in op._schema.returns)


def _on_device(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run any operator on the device."""
    name, schema = str(op), op._schema
    if any(value.alias_info is not None and not value.alias_info.is_write for value in schema.returns):
        return op.redispatch(_CPU_KERNELS, *args, **kwargs)
    if name.startswith("aten.set_."):
        return op.redispatch(_CPU_KERNELS, *args, **kwargs)
    if device.full and name.startswith("aten.empty") and _asked_by_truestep():
        raise torch.OutOfMemoryError("the device's memory is full")
    device.seen.operators.append(name)
    if _waits(op, name, args):
        device.wait(name)
    if name == "aten._local_scalar_dense.default":
        return _down(args[0]).item()
    if name == "aten._copy_from.default":
        _down(args[1]).copy_(_down(args[0]))
        return args[1]
    given = [
        (argument.name, kwargs.get(argument.name) if argument.kwarg_only else args[index])
        for index, argument in enumerate(schema.arguments)
        if argument.alias_info is not None
        and argument.alias_info.is_write
        and (argument.kwarg_only or index < len(args))
    ]
    lent, named = _down(args), _down(kwargs)
    grown = [(name, one) for name, one in given if isinstance(one, torch.Tensor) and name in named and not one.numel()]
    for key, one in grown:  # memory that was lent cannot grow
        named[key] = torch.empty(0, dtype=one.dtype)
    with _drawing(op):
        made = op(*lent, **named)
    for key, one in grown:
        one.set_(_up(named[key]))
    if not any(value.alias_info is not None for value in schema.returns):
        return _up(made)
    return given[0][1] if len(schema.returns) == 1 else tuple(one for _, one in given)


device = Device()
_setup_privateuseone_for_python_backend(NAME, backend_module=device)
_library = torch.library.Library("_", "IMPL")
_library.fallback(_on_device, "PrivateUse1")
_library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")


@torch.library.impl("aten::convolution_overrideable", "PrivateUse1")
def _convolution(*args: Any) -> Any:
    return _on_device(torch.ops.aten.convolution.default, *args)


@torch.library.impl("aten::convolution_backward_overrideable", "PrivateUse1")
def _convolution_backward(grad: Any, input: Any, weight: Any, *rest: Any) -> Any:
    *settings, mask = rest
    biases = [weight.shape[1] * settings[-1] if settings[4] else weight.shape[0]]
    return _on_device(torch.ops.aten.convolution_backward.default, grad, input, weight, biases, *settings, mask)


def _casting(op: Any) -> Any:
    """Return an operator that computes in the type of autocast, as an accelerator registers those it is fast at."""

    def cast(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(torch.get_autocast_dtype(NAME)) if floating else value

    def called(*args: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            return op(*map(cast, args))

    return called


for _op in (torch.ops.aten.linear.default, torch.ops.aten.conv2d.default):
    torch.library.impl(_op.name(), "AutocastPrivateUse1")(_casting(_op))


def _clone(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """Copy a storage, which torch does with an allocator that the device does not have."""
    if storage.device.type != NAME:
        return _clone_elsewhere(storage)
    whole = torch.empty(0, dtype=torch.uint8, device=NAME).set_(storage, 0, (storage.nbytes(),))
    return whole.clone().untyped_storage()


_clone_elsewhere = torch.UntypedStorage.clone
torch.UntypedStorage.clone = _clone
