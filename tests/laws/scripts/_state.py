"""The state at the end of a run, to the last bit."""

import hashlib
import random

import numpy
import torch

random.seed(0)
numpy.random.seed(0)


def digest(value: object) -> str:
    """Return a short hash of everything inside a value: tensors by their bytes, the rest by its repr."""
    hashed = hashlib.sha256()
    _feed(hashed, value)
    return hashed.hexdigest()[:16]


def _feed(hashed: "hashlib._Hash", value: object) -> None:
    if isinstance(value, torch.Tensor):
        tensor = value.detach().to_dense().contiguous().cpu()
        hashed.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        hashed.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key, item in value.items():
            hashed.update(repr(key).encode())
            _feed(hashed, item)
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(hashed, item)
    elif isinstance(value, numpy.ndarray):
        hashed.update(value.tobytes())
    else:
        hashed.update(repr(value).encode())


def tell(*things: object) -> None:
    """Print hashes of models and optimizers (their state and gradients), and of the three random states."""
    for thing in things:
        print(type(thing).__name__, digest(thing.state_dict()))
        if isinstance(thing, torch.nn.Module):
            grads = [None if p.grad is None else (p.grad, p.grad._version) for p in thing.parameters()]
            print("grads", digest(grads), [p._version for p in thing.parameters()])
    print("torch", digest(torch.get_rng_state()))
    print("numpy", digest(numpy.random.get_state()))
    print("python", digest(random.getstate()))
