"""Notices on saved files and on the KL divergence, with the harm that the installed torch shows."""

import os
import sys
import types
import warnings

import pytest
import torch
import torch.nn.functional as F

from truestep.lint import lint

NOTICES = {"kl-reduction-mean", "unsafe-load", "whole-model-pickled"}
IMPORTS = "import io\nimport os\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
NET = "class Net(nn.Module):\n    pass\nnet = Net()\n"


def found(text):
    lines = IMPORTS.count("\n")
    return [
        (one.rule, one.primary.site.line - lines, one.confidence.value)
        for one in lint(IMPORTS + text)
        if one.rule in NOTICES
    ]


# --- unsafe-load ---


class Command:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_file_runs_code_only_without_weights_only(tmp_path):
    file, made = tmp_path / "weights.pt", tmp_path / "made"
    torch.save({"weight": torch.ones(2), "more": Command(str(made))}, file)
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(file)
    assert not made.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.load(file, weights_only=False)
    assert made.exists()


def test_a_file_for_another_device_is_refused_aloud(tmp_path, monkeypatch):
    """A missing `map_location` needs no notice: torch raises, and names the argument."""
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
    torch.save({"weight": torch.ones(2)}, tmp_path / "a.pt")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("x = torch.load(path, weights_only=False)", "low"),
        ("x = torch.load('a.pt', map_location='cpu', weights_only=False)", "low"),
        ("x = torch.load(hub.hf_hub_download('a', 'b.pt'), weights_only=False)", "medium"),
        ("x = torch.hub.load_state_dict_from_url(url, weights_only=False)", "medium"),
        ("x = torch.load('a.pt', weights_only=False); torch.save(x, 'b.pt')", "low"),
    ],
)
def test_unsafe_loads_are_found(text, confidence):
    assert found(text) == [("unsafe-load", 1, confidence)]


def test_a_download_is_found_through_its_name():
    text = "path = hf_hub_download('a', 'b.pt')\nx = torch.load(path, weights_only=False)"
    assert found(text) == [("unsafe-load", 2, "medium")]


@pytest.mark.parametrize(
    "text",
    [
        "x = torch.load('a.pt')",
        "x = torch.load('a.pt', weights_only=True)",
        "x = torch.load('a.pt', weights_only=safe)",
        "torch.save(x, 'a.pt')\nx = torch.load('a.pt', weights_only=False)",
        "buffer = io.BytesIO()\ntorch.save(x, buffer)\nx = torch.load(buffer, weights_only=False)",
        "with open(p, 'wb') as f: torch.save(x, f)\nwith open(p, 'rb') as g: x = torch.load(g, weights_only=False)",
        "store.save_state(x, path)\nx = torch.load(path, weights_only=False)",
        "torch.save(x, os.path.join(run, n))\nx = torch.load(os.path.join(run, 'a.pt'), weights_only=False)",
        "torch.save(x, run / 'a.pt')\nx = torch.load(run / names[0], weights_only=False)",
    ],
    ids=["default", "safe", "variable", "own", "memory", "open", "helper", "folder", "slash"],
)
def test_safe_loads_and_own_files_are_quiet(text):
    assert found(text) == []


# --- whole-model-pickled ---


def test_a_pickled_model_computes_what_the_code_says_later(tmp_path, monkeypatch):
    module = types.ModuleType("of_a_model")
    monkeypatch.setitem(sys.modules, "of_a_model", module)
    code = "from torch import nn\nclass Net(nn.Linear):\n    def forward(self, x):\n        return super().forward(x)"
    exec(code, module.__dict__)
    model, x = module.Net(3, 2), torch.randn(4, 3)
    torch.save(model, tmp_path / "whole.pt")
    exec(f"{code}.relu()", module.__dict__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = torch.load(tmp_path / "whole.pt", weights_only=False)
    assert torch.equal(loaded.weight, model.weight)
    assert not torch.equal(loaded(x), model(x))
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(tmp_path / "whole.pt")


@pytest.mark.parametrize(
    ("text", "line", "confidence"),
    [
        (f"{NET}torch.save(net, 'a.pt')", 4, "medium"),
        (f"{NET}net = net.to('cuda')\ntorch.save(net, 'a.pt')", 5, "medium"),
        (f"{NET}torch.save({{'net': net, 'epoch': 3}}, 'a.pt')", 4, "medium"),
        ("torch.save(model, path)", 1, "low"),
        ("torch.save(self.model.module, path)", 1, "low"),
    ],
    ids=["model", "moved", "dict", "name", "wrapped"],
)
def test_pickled_models_are_found(text, line, confidence):
    assert found(text) == [("whole-model-pickled", line, confidence)]


@pytest.mark.parametrize(
    "text",
    [
        f"{NET}torch.save(net.state_dict(), 'a.pt')",
        f"{NET}model = net.state_dict()\ntorch.save(model, 'a.pt')",
        f"{NET}torch.save({{'model': net.state_dict()}}, 'a.pt')",
        f"{NET}torch.save(net, 'a.pt')\nnet = torch.load('a.pt', weights_only=False)",
        f"{NET}buffer = io.BytesIO()\ntorch.save(net, buffer)",
        "torch.save(model_state, 'a.pt')\ntorch.save(model_config, 'b.pt')\ntorch.save(self.model_outputs, 'c.pt')",
        "torch.save(optimizer, 'a.pt')\ntorch.save(values, 'b.pt')",
        "torch.save(torch.jit.script(nn.Linear(2, 2)), 'a.pt')",
    ],
    ids=["state", "alias", "dict", "loaded", "memory", "names", "others", "script"],
)
def test_other_saves_are_quiet(text):
    assert found(text) == []


# --- kl-reduction-mean ---


@pytest.mark.parametrize("classes", [10, 1000])
def test_the_default_reduction_divides_by_the_number_of_classes(classes):
    torch.manual_seed(0)
    logits = torch.randn(32, classes, requires_grad=True)
    target = torch.randn(32, classes).softmax(1)
    with pytest.warns(UserWarning, match="batchmean"):
        mean = F.kl_div(logits.log_softmax(1), target)
    right = F.kl_div(logits.log_softmax(1), target, reduction="batchmean")
    torch.testing.assert_close(right, classes * mean)
    (of_mean,) = torch.autograd.grad(mean, logits)
    (of_right,) = torch.autograd.grad(right, logits)
    torch.testing.assert_close(of_right, classes * of_mean)


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("loss = F.kl_div(a, b)", "medium"),
        ("loss = ce + alpha * T * T * F.kl_div(a, b, log_target=True)", "medium"),
        ("loss = nn.KLDivLoss()(a, b) * (alpha * T * T)", "medium"),
        ("criterion = nn.KLDivLoss(); loss = criterion(a, b)", "medium"),
        ("loss = F.kl_div(a, b, reduction='mean')", "low"),
        ("loss = F.kl_div(a, b) * 4", "low"),
        ("criterion = nn.KLDivLoss(); loss = 30.0 * criterion(a, b)", "low"),
    ],
)
def test_the_default_reduction_is_found(text, confidence):
    assert found(text) == [("kl-reduction-mean", 1, confidence)]


@pytest.mark.parametrize(
    "text",
    [
        "loss = F.kl_div(a, b, reduction='batchmean')",
        "loss = F.kl_div(a, b, reduction='sum') / len(a)",
        "loss = F.kl_div(a, b, None, None, 'none').sum(1).mean()",
        "loss = F.kl_div(a, b, size_average=False)",
        "loss = F.kl_div(a, b, reduction=reduction)",
        "loss = F.kl_div(a, b, **options)",
        "loss = F.kl_div(a, b) * a.shape[1]",
        "loss = num_classes * F.kl_div(a, b)",
        "criterion = nn.KLDivLoss(); loss = criterion(a, b) * a.size(1)",
        "criterion = nn.KLDivLoss(reduction='batchmean')",
    ],
)
def test_other_reductions_are_quiet(text):
    assert found(text) == []
