"""The module call: outermost calls are observed, and compilers and exporters observe no difference."""

import copy
import io
import pickle
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable

import pytest
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.utils import counters
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from truestep.events import Event, ForwardCalledDirectly, LossComputed, ModelCalled, ModelMet
from truestep.testing import capture_events

pytestmark = pytest.mark.filterwarnings("ignore")
X, Y = torch.randn(5, 4), torch.randint(0, 3, (5,))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def calls(events: list[Event]) -> list[ModelCalled]:
    return [event for event in events if isinstance(event, ModelCalled)]


def _module() -> object:
    compiled = torch.compile(net(), fullgraph=True, backend="aot_eager")
    return [compiled(X) for _ in range(3)]


def _function() -> object:
    model, criterion = net(), nn.CrossEntropyLoss()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x = x * 2
        return criterion(model(x), y) + nn.functional.mse_loss(model(x)[:, 0], x[:, 0])

    return [loss_of(X, Y).backward() for _ in range(3)], [p.grad for p in model.parameters()]


def _sequential_compile() -> object:
    model = net()
    model.compile(backend="aot_eager")
    return model(X), model(X)


def _own_class_compile() -> object:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x).relu()

    model = Own()
    model.compile(backend="aot_eager", fullgraph=True)
    return model(X), nn.Sequential(model, nn.ReLU())(X)


def _encoder_layer_compile() -> object:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    layer.compile(backend="aot_eager")
    return layer(torch.ones(2, 3, 8))


def _inside_and_outside() -> object:
    layer = nn.Linear(4, 4)
    compiled = torch.compile(lambda x: layer(x), backend="aot_eager")

    class Outer(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return compiled(x)

    outer = Outer()
    return [tuple(f(X).shape) for f in (outer, compiled, outer, compiled)]


def _export() -> object:
    return torch.export.export(net(), (X,)).module()(X)


def _export_strict() -> object:
    return torch.export.export(net(), (X,), strict=True).module()(X)


def _trace() -> object:
    return torch.jit.trace(net(), X)(X).detach()


def _script() -> object:
    return torch.jit.script(net())(X).detach()


def _fx() -> object:
    return torch.fx.symbolic_trace(net())(X)


def _make_fx() -> object:
    model = net()
    traced = make_fx(lambda x: model(x))(X)
    return traced.code, traced(X)


def _transforms() -> object:
    model = net()

    def loss_of(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    return vmap(grad(loss_of), in_dims=(None, 0, 0))(dict(model.named_parameters()), X, Y)


def _copies() -> object:
    model = net()
    file = io.BytesIO()
    torch.save(model, file)
    return len(file.getvalue()), pickle.loads(pickle.dumps(model))(X), copy.deepcopy(model)(X)


CASES = [
    _module, _function, _sequential_compile, _own_class_compile, _encoder_layer_compile, _inside_and_outside, _export,
    _export_strict, _trace, _script, _fx, _make_fx, _transforms, _copies,
]  # fmt: skip
LONG = [_module, _function, _export_strict]
"""Part of `make programs`."""


def outcome(case: Callable[[], object]) -> tuple[str, object, object]:
    torch._dynamo.reset()
    counters.clear()
    warnings.simplefilter("ignore")
    result = case()
    return repr(result), counters["stats"].get("unique_graphs", 0), dict(counters["graph_break"])


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.program] * (case in LONG)) for case in CASES],
    ids=lambda case: case.__name__.strip("_"),
)
def test_compilers_and_exporters_do_what_they_do_without_a_session(case: Callable[[], object]) -> None:
    plain = outcome(case)
    with capture_events():
        assert outcome(case) == plain
    assert outcome(case) == plain


def test_tracebacks_have_the_same_frames() -> None:
    class Failing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError

    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(Failing()))

    def frames() -> list[tuple[object, ...]]:
        try:
            model(X)
        except ValueError:
            found = traceback.extract_tb(sys.exc_info()[2])
            return [(f.filename, f.name, f.lineno, f.colno, f.end_colno, f.line) for f in found]
        return []

    plain = frames()
    with capture_events():
        watched = [frames() for _ in range(3)]
    assert watched == [plain] * 3


def test_outermost_calls_are_counted_right_in_two_threads() -> None:
    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                time.sleep(0.0005)
                x = layer(x)
            return x

    model = Slow()

    def work() -> None:
        for _ in range(20):
            model(torch.ones(1, 1))

    with capture_events() as events:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(calls(events)) == 40
    assert [met.kind for met in events if isinstance(met, ModelMet)] == ["Slow"]


def test_transforms_in_datasets_are_not_model_calls() -> None:
    class Transform(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    transform = Transform()

    class Data(torch.utils.data.Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> torch.Tensor:
            return transform(torch.ones(4)).detach()

    model = nn.Linear(4, 1)
    with capture_events() as events:
        for x in torch.utils.data.DataLoader(Data(), 10):
            model(x)
    assert len(calls(events)) == 10
    assert [met.kind for met in events if isinstance(met, ModelMet)] == ["Linear"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputation_is_not_a_call(reentrant: bool) -> None:
    ran = 0

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            nonlocal ran
            ran += 1
            return self.layer(x)

    block = Block()
    with capture_events() as events:
        for _ in range(5):
            checkpoint(block, X.clone().requires_grad_(), use_reentrant=reentrant).sum().backward()
    assert (ran, len(calls(events))) == (10, 5)


def test_inner_calls_take_the_fast_path() -> None:
    """Outside of sampled steps, nothing of ours runs for an inner module."""
    model = nn.Sequential(*[nn.Identity() for _ in range(20)], nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    entered: list[str] = []
    with capture_events():
        for _ in range(5):
            model(X).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        def profile(frame: object, event: str, argument: object) -> None:
            code = frame.f_code  # type: ignore[attr-defined]
            if event == "call" and code.co_name == "enter":
                entered.append(code.co_filename)

        sys.setprofile(profile)
        model(X)
        sys.setprofile(None)
    assert len(entered) == 1


def test_a_call_of_forward_is_seen_and_is_one_call() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

    model = Own()
    with capture_events() as events:
        model.forward(X)
        model(X)
    assert [event.kind for event in events if isinstance(event, ForwardCalledDirectly)] == ["Own"]
    assert len(calls(events)) == 2


def test_what_a_call_tells() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    with capture_events() as events:
        model(X)
        model.eval()
        with torch.no_grad():
            model(X)
    first, second = calls(events)
    assert (first.training, first.grad, first.tracked) == (True, True, True)
    assert first.sensitive == ("BatchNorm1d", "Dropout")
    assert (second.training, second.sensitive, second.grad, second.tracked) == (False, (), False, False)
    assert second.same_input
    assert first.discarded


@pytest.mark.parametrize("begun", ["before", "inside"])
def test_losses_compile_in_full_before_inside_and_after_a_session(begun: str) -> None:
    model = net()

    def compiled() -> torch.Tensor:
        torch._dynamo.reset()
        function = torch.compile(
            lambda x, y: nn.functional.cross_entropy(model(x), y), fullgraph=True, backend="aot_eager"
        )
        return function(X, Y)

    expected = compiled() if begun == "before" else nn.functional.cross_entropy(model(X), Y)
    with capture_events() as events:
        assert torch.equal(compiled(), expected)
    assert not any(isinstance(event, LossComputed) for event in events)
    assert torch.equal(compiled(), expected)
