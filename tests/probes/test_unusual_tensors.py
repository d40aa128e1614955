"""Parameters and batches that are not plain real tensors: read without an error and without a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map

from truestep.findings import Summary
from truestep.supervision import Session


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, dtype=torch.cfloat))
        self.gain = nn.Parameter(torch.ones(3, dtype=torch.cdouble))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight.mT) * self.gain


def watched(train: Callable[[], None]) -> Summary:
    with Session() as session:
        train()
    return session.stop()


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("clear", [True, False])
def test_complex_parameters(name: str, clear: bool) -> None:
    def train() -> None:
        torch.manual_seed(0)
        model = Complex()
        optimizer = OPTIMIZERS[name](model.parameters())
        for _ in range(12):
            x = torch.randn(8, 4, dtype=torch.cfloat)
            if clear:
                optimizer.zero_grad()
            (model(x) - x[:, :3]).abs().square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    summary = watched(train)
    assert summary.internal_errors == ()
    assert {finding.rule for finding in summary.findings} == (set() if clear else {"missing-zero-grad"})


@pytest.mark.parametrize("way", ["data", "numpy", "values"])
def test_complex_gradients_that_are_cleared_past_their_version(way: str) -> None:
    def train() -> None:
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(3, 4, dtype=torch.cfloat))
        optimizer = torch.optim.SGD([weight], lr=0.01)
        for _ in range(12):
            (torch.randn(8, 4, dtype=torch.cfloat) @ weight.mT).abs().square().mean().backward()
            optimizer.step()
            if way == "data":
                weight.grad.data.zero_()
            elif way == "numpy":
                weight.grad.numpy()[:] = 0
            else:
                weight.grad.zero_()

    summary = watched(train)
    assert summary.internal_errors == ()
    assert summary.findings == ()


def test_nested_tensors_in_the_jagged_layout() -> None:
    def train() -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(12):
            words = [torch.randint(20, (length,)) for length in (3, 5, 2)]
            rows = model(torch.nested.nested_tensor(words, layout=torch.jagged)).to_padded_tensor(0.0)
            optimizer.zero_grad()
            rows.square().mean().backward()
            optimizer.step()

    summary = watched(train)
    assert summary.internal_errors == ()
    assert summary.findings == ()


def test_a_gradient_that_is_complex_and_not_resolved_is_read() -> None:
    from truestep.probes.gradients.gradient_states import here, looks_zero

    weight = nn.Parameter(torch.randn(4, 4, dtype=torch.cfloat))
    (torch.randn(2, 4, dtype=torch.cfloat) @ weight.mH).abs().sum().backward()
    assert weight.grad.is_conj()
    assert here(weight.grad).shape == (4, 4, 2)
    assert float(here(weight.grad).norm()) == pytest.approx(float(weight.grad.abs().square().sum().sqrt()))
    assert not looks_zero(weight.grad)
    assert looks_zero(torch.zeros(3, dtype=torch.cdouble).conj())


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_parameters_are_read_where_their_numbers_are_stored(layout: str) -> None:
    weight = nn.Parameter(torch.eye(4).to_sparse_coo() if layout == "coo" else torch.eye(4).to_sparse_csr())

    def train() -> None:
        head = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(12):
            head.zero_grad()
            head((weight @ torch.randn(4, 3)).t()).square().mean().backward()
            with torch.no_grad():
                values = weight._values() if layout == "coo" else weight.values()
                values.sub_(0.01)
                weight.grad = None
            optimizer.step()

    summary = watched(train)
    assert summary.internal_errors == ()
    assert [finding.rule for finding in summary.findings] == []


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_training_without_values_is_watched_without_an_error(kind: str) -> None:
    from contextlib import nullcontext

    from torch._subclasses.fake_tensor import FakeTensorMode

    def train() -> None:
        device = "meta" if kind == "meta" else "cpu"
        with FakeTensorMode() if kind == "fake" else nullcontext():
            with torch.device(device):
                model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1, foreach=False)
            for _ in range(12):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(torch.ones(6, 4, device=device)), torch.ones(6, 1, device=device))
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()

    summary = watched(train)
    assert summary.internal_errors == ()
    assert summary.steps == 12
    assert summary.findings == ()


class Wrapping(torch.Tensor):
    """Holds another tensor and runs every operation on that one."""

    seen = 0

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> torch.Tensor:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, strides=held.stride())

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Wrapping.seen += 1

        def bare(value: Any) -> Any:
            return value.held if isinstance(value, Wrapping) else value

        kwargs = kwargs or {}
        out = func(*tree_map(bare, args), **tree_map(bare, kwargs))
        out = tree_map(lambda value: Wrapping(value) if isinstance(value, torch.Tensor) else value, out)
        return return_and_correct_aliasing(func, args, kwargs, out)


def test_a_class_that_runs_operations_by_itself_is_not_read() -> None:
    def train() -> None:
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        model.weight = nn.Parameter(Wrapping(model.weight.detach()))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
        Wrapping.seen = 0
        for _ in range(30):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()

    train()
    plain = Wrapping.seen
    summary = watched(train)
    assert plain == Wrapping.seen
    assert summary.internal_errors == ()
    assert summary.findings == ()
