"""Dropout in functions without a module."""

import importlib.util

import pytest

from truestep.events import FunctionDropped
from truestep.testing import capture_events

PROGRAM = """
import torch
import torch.nn.functional as F

G = torch.Generator().manual_seed(0)
W = [(0.3 * torch.randn(4, 8, generator=G)).requires_grad_(), (0.3 * torch.randn(8, 1, generator=G)).requires_grad_()]
X, Y = torch.randn(60, 4, generator=G), torch.randn(60, 1, generator=G)


def forward(w, x, {flag}):
    {corrupt}h = torch.relu(x @ w[0])
    h = {drop}
    return h @ w[1]


{evaluation}


def train():
    for step in range(6):
        loss = ((forward(W, X, {given}) - Y) ** 2).mean()
        for g, p in zip(torch.autograd.grad(loss, W), W):
            p.data.sub_(0.1 * g)
        {evaluate}
"""
EVALUATION = """
@torch.no_grad()
def evaluate(w, x, y):
    total = 0.0
    for a, b in zip(x.split(20), y.split(20)):
        total += ((forward(w, a) - b) ** 2).sum().item()
    return total / len(x)
"""


def events_of(
    tmp_path, flag="train=True", drop="F.dropout(h, 0.3, train)", given="train=True", evaluation=EVALUATION,
    evaluate="evaluate(W, X, Y)", corrupt="",
):  # fmt: skip
    path = tmp_path / "functions_with_dropout.py"
    path.write_text(PROGRAM.format(**{name: value for name, value in locals().items() if name != "path"}))
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    with capture_events() as events:
        spec.loader.exec_module(module)
        module.train()
    return [event for event in events if isinstance(event, FunctionDropped)]


EVALUATIONS = {
    "in batches": EVALUATION,
    "an accuracy": "@torch.no_grad()\ndef evaluate(w, x, y):\n    out = forward(w, x)\n    sign = out > 0\n"
    "    return (sign == (y > 0)).float().mean().item()",
    "two functions": "def logits(w, x):\n    with torch.no_grad():\n        return forward(w, x)\n\n\n"
    "def evaluate(w, x, y):\n    out = logits(w, x)\n    return float(((out - y) ** 2).mean())",
    "set to true": EVALUATION.replace("forward(w, a)", "forward(w, a, train=True)"),
}


@pytest.mark.parametrize("evaluation", EVALUATIONS.values(), ids=EVALUATIONS)
@pytest.mark.parametrize("drop", ["F.dropout(h, 0.3, train)", "F.dropout(h, p=0.3, training=train)"])
def test_a_mode_that_no_call_turns_off_is_found(tmp_path, evaluation, drop):
    (event,) = events_of(tmp_path, evaluation=evaluation, drop=drop)
    assert (event.function, event.mode) == ("forward", "train")
    assert event.call is not None
    assert event.call.function == "evaluate"
    assert event.draws >= 6


@pytest.mark.parametrize("left_out", ["F.dropout(h, 0.3)", "F.dropout(h, p=0.3)"])
def test_a_dropout_without_the_mode_beside_another_is_found(tmp_path, left_out):
    drop = f"{left_out}\n    h = F.dropout(h, 0.3, training=train)"
    (event,) = events_of(tmp_path, flag="train=False", drop=drop)
    assert event.follows == "train"
    assert event.site is not None
    assert event.site.line == 12


def test_a_mode_through_another_function_is_followed(tmp_path):
    between = "def predict(w, x, train=True):\n    return forward(w, x, train)\n\n\n"
    evaluation = between + EVALUATION.replace("forward(w, a)", "predict(w, a)")
    assert len(events_of(tmp_path, evaluation=evaluation)) == 1
    evaluation = between + EVALUATION.replace("forward(w, a)", "predict(w, a, False)")
    assert events_of(tmp_path, evaluation=evaluation) == []


SAMPLED = "@torch.no_grad()\ndef evaluate(w, x, y):\n    outs = [forward(w, x) for _ in range(8)]\n"
HEALTHY = {
    "off by default": {"flag": "train=False"},
    "off in evaluation": {"evaluation": EVALUATION.replace("forward(w, a)", "forward(w, a, train=False)")},
    "off in another one": {
        "evaluation": EVALUATION + "\n\ndef score(w, x):\n    with torch.no_grad():\n"
        "        return forward(w, x, False).mean().item()\n"
    },
    "a variable": {"evaluation": EVALUATION.replace("forward(w, a)", "forward(w, a, x.requires_grad)")},
    "samples": {"evaluation": SAMPLED + "    return torch.stack(outs).mean(0).std().item()"},
    "samples in a loop": {
        "evaluation": "@torch.no_grad()\ndef evaluate(w, x, y):\n    total = 0.0\n    for _ in range(8):\n"
        "        total = total + forward(w, x)\n    return (total / 8 - y).abs().mean().item()"
    },
    "samples by the name": {
        "evaluation": EVALUATION.replace("evaluate", "mc_error"), "evaluate": "mc_error(W, X, Y)"
    },
    "several times": {"evaluate": "[evaluate(W, X, Y) for _ in range(4)]",
                      "evaluation": "@torch.no_grad()\ndef evaluate(w, x, y):\n    return forward(w, x).mean().item()"},
    "pseudo-labels": {
        "evaluation": "def evaluate(w, x, y):\n    with torch.no_grad():\n        target = forward(w, x)\n"
        "    loss = ((forward(w, x) - target) ** 2).mean()\n    loss.backward()"
    },
    "no flag": {"flag": "train=True", "drop": "F.dropout(h, 0.3)"},
    "not evaluated": {"evaluate": "pass"},
    "with gradients": {"evaluation": EVALUATION.replace("@torch.no_grad()\n", "")},
    "noise in the input": {"corrupt": "x = F.dropout(x, 0.3, train)\n    ", "drop": "h"},
    "a rate of zero": {"drop": "F.dropout(h, 0.0, train)"},
    "passed on as a value": {"evaluation": EVALUATION + "\n\nrun = [forward][0]\n"},
    "always on beside a switch that stays on": {"drop": "F.dropout(F.dropout(h, 0.3), 0.2, train)", "evaluate": "pass"},
}  # fmt: skip


@pytest.mark.parametrize("parts", HEALTHY.values(), ids=HEALTHY)
def test_dropout_on_purpose_is_silent(tmp_path, parts):
    assert events_of(tmp_path, **parts) == []


MASK = "h * (torch.rand(h.shape) > drop).float() / (1 - drop) if drop > 0 else h"
LONG = PROGRAM.replace("range(6)", "range(20)").replace("        {evaluate}", "        score = {evaluate}")


@pytest.fixture
def _with_a_score(monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAM", LONG)


@pytest.mark.usefixtures("_with_a_score")
@pytest.mark.parametrize(
    ("flag", "drop"),
    [("drop=0.2", MASK), ("train=True, drop=0.2", "h * torch.bernoulli(0.8 * torch.ones_like(h)) if train else h")],
)
@pytest.mark.parametrize("given", ["drop=0.2", ""])
def test_a_mask_that_no_call_turns_off_is_found(tmp_path, flag, drop, given):
    (event,) = events_of(tmp_path, flag=flag, drop=drop, given=given)
    assert event.function == "forward"
    assert event.mode == flag.partition("=")[0]
    assert event.call is not None


MASKED = {
    "off by default": {"flag": "drop=0.0"},
    "off in evaluation": {"evaluation": EVALUATION.replace("forward(w, a)", "forward(w, a, drop=0)")},
    "off by a constant": {"evaluation": "OFF = 0.0\n" + EVALUATION.replace("forward(w, a)", "forward(w, a, drop=OFF)")},
    "a variable": {"evaluation": EVALUATION.replace("forward(w, a)", "forward(w, a, drop=0.1 * len(x))")},
    "samples": {"evaluation": SAMPLED + "    return torch.stack(outs).mean(0).std().item()"},
    "no flag": {"drop": "h * (torch.rand(h.shape) > 0.2).float()"},
    "noise in the input": {"drop": "h", "corrupt": "x = x * torch.rand_like(x) if drop > 0 else x\n    "},
    "another switch": {"flag": "noise=0.2", "given": "noise=0.2", "drop": MASK.replace("drop", "noise")},
    "with gradients": {"evaluation": EVALUATION.replace("@torch.no_grad()\n", "")},
    "not evaluated": {"evaluate": "0.0"},
    "off if it is given": {"drop": MASK.replace("drop > 0", "drop < 0")},
}


@pytest.mark.usefixtures("_with_a_score")
@pytest.mark.parametrize("parts", MASKED.values(), ids=MASKED)
def test_a_mask_on_purpose_is_silent(tmp_path, parts):
    assert events_of(tmp_path, **({"flag": "drop=0.2", "given": "drop=0.2", "drop": MASK} | parts)) == []
