"""Programs that would see that their functions are observed: they are left alone, and others are not."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from truestep.events import FunctionMet
from truestep.probes.functions.watchers import watches
from truestep.testing import capture_events


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import torch as th\nfast = th.compile(net)", True),
        ("from torch import compile as quick", True),
        ("from torch.jit import script", True),
        ("from torch import jit", True),
        ("import importlib\njit = importlib.import_module('torch.jit')", True),
        ("@torch.jit.script\ndef f(x): return x", True),
        ("torch.export.export(net, (x,))", True),
        ("from torch.fx.experimental.proxy_tensor import make_fx", True),
        ("import traceback", True),
        ("from traceback import format_exc", True),
        ("import sys\nname = sys._getframe(1).f_code.co_name", True),
        ("import inspect\nname = inspect.stack()[1].function", True),
        ("import inspect\nname = inspect.getfile(predict)", True),
        ("log.exception('stopped')", True),
        ("log.info('stopped', exc_info=True)", True),
        ("tb = error.__traceback__", True),
        ("import sys\nsys.settrace(tracer)", True),
        ("import marshal\ntext = marshal.dumps(predict.__code__)", True),
        ("line = predict.__code__.co_firstlineno", True),
        ("import re\nword = re.compile('drop')", False),
        ("import inspect\nnames = inspect.signature(predict).parameters", False),
        ("names = predict.__code__.co_varnames[:predict.__code__.co_argcount]", False),
        ("whole = torch.stack(parts)\nlog.info('stopped', stacklevel=2)", False),
        ("import pickle\ntext = pickle.dumps(predict)  # no torch.compile", False),
    ],
)
def test_reading_frames_or_code_or_compiling_is_seen(text: str, seen: bool, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    assert watches(str(path)) is seen


TRAINING = """
import logging, sys, warnings
import torch
{more}
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(funcName)s %(lineno)d %(message)s")
warnings.simplefilter("always")
warnings.showwarning = lambda message, kind, file, line, *rest: print(file, line, message)
torch.manual_seed(0)
w = (torch.randn(8, 3) * 0.3).requires_grad_()
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))

def layer(x, depth):
    return x @ w if depth == 0 else layer(x, depth - 1)

def predict(x):
    {inside}
    return layer(x, {depth})

{before}
optimizer = torch.optim.SGD([w], 0.1)
for step in range(8):
    loss = torch.nn.functional.cross_entropy(predict(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.parametrize(
    ("more", "inside", "before", "depth"),
    [
        ("", "warnings.warn('each', stacklevel=2); logging.info('called', stacklevel=2)", "", 300),
        ("import helper", "x = x + 0", "predict = helper.quick(predict)", 2),
    ],
)
def test_the_program_prints_the_same(more: str, inside: str, before: str, depth: int, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "import torch\nquick = lambda f: torch.compile(f, backend='eager', fullgraph=True)\n"
    )
    script = tmp_path / "train.py"
    script.write_text(TRAINING.format(more=more, inside=inside, before=before, depth=depth))
    plain, supervised = (
        subprocess.run([sys.executable, *module, str(script)], capture_output=True, text=True, check=True)
        for module in ((), ("-m", "truestep", "run", "--format", "json", "--output", str(tmp_path / "report.json")))
    )
    assert supervised.stdout == plain.stdout


X = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))


def test_weights_of_a_closure_that_names_itself_are_freed() -> None:
    kept: list[weakref.ref[Tensor]] = []

    def train() -> None:
        w = (torch.ones(8, 3) * 0.1).requires_grad_()
        scale = torch.ones(3, requires_grad=True)

        def last(x: Tensor) -> Tensor:
            return (x @ w) * scale

        def predict(x: Tensor, depth: int) -> Tensor:
            return last(x) if depth == 0 else predict(x, depth - 1)

        optimizer = torch.optim.SGD([w, scale], 0.1)
        for _ in range(8):
            loss = F.mse_loss(predict(X, 2), X[:, :3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        kept.append(weakref.ref(w))

    with capture_events() as events:
        train()
        gc.collect()
        alive = kept[0]() is not None
    assert any(isinstance(event, FunctionMet) for event in events)
    assert not alive
