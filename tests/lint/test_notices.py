"""Notices: what the documentation of torch advises against, with the evidence of the installed torch."""

import warnings

import pytest
import torch
from torch import nn

from truestep.findings import Confidence
from truestep.lint import lint
from truestep.rules import all_rules, catalogue

NOTICES = {
    "data-parallel-module",
    "deprecated-amp-api",
    "deprecated-backward-hook",
    "deprecated-torchscript",
    "kl-reduction-mean",
    "timing-without-synchronise",
    "unsafe-load",
    "whole-model-pickled",
}


def found(text):
    return [(one.rule, one.primary.site.line, one.confidence.value) for one in lint(text) if one.rule in NOTICES]


def test_notices_are_in_the_catalogue_and_not_in_runs():
    assert catalogue().keys() - all_rules().keys() == NOTICES
    assert all(not catalogue()[id].in_runs and catalogue()[id].reads_syntax() for id in NOTICES)


@pytest.mark.parametrize(
    "line",
    [
        "from torch.cuda.amp import GradScaler\nscaler = GradScaler()",
        "from torch.cuda import amp\nscaler = amp.GradScaler()",
        "import torch\nwith torch.cuda.amp.autocast(enabled=True): pass",
        "from torch.cpu.amp import autocast\nwith autocast(): pass",
        "import torch.cuda.amp as amp\nwith amp.autocast_mode.autocast(): pass",
    ],
)
def test_old_names_of_mixed_precision_are_found(line):
    assert found(line) == [("deprecated-amp-api", 2, "high")]


@pytest.mark.parametrize(
    "text",
    [
        "from torch.amp import GradScaler\nscaler = GradScaler('cuda')",
        "import torch\nwith torch.autocast('cuda'): pass",
        "try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    from torch.cuda.amp import GradScaler\n"
        "scaler = GradScaler()",
        "import torch\nif hasattr(torch.amp, 'GradScaler'):\n    s = torch.amp.GradScaler()\nelse:\n"
        "    s = torch.cuda.amp.GradScaler()",
        "import torch\ns = torch.amp.GradScaler() if TORCH_GREATER_EQUAL_2_4 else torch.cuda.amp.GradScaler()",
        "from apex.amp import autocast\nwith autocast(): pass",
        "import torch\nif torch.__version__ < '2.3':\n    from torch.cuda.amp import GradScaler\ns = GradScaler()",
    ],
    ids=["new", "autocast", "try", "hasattr", "flag", "apex", "old-version"],
)
def test_new_names_and_second_choices_are_quiet(text):
    assert found(text) == []


def test_the_old_names_warn_in_the_installed_torch():
    for call in (lambda: torch.cuda.amp.GradScaler(enabled=False), lambda: torch.cpu.amp.autocast()):
        with pytest.warns(FutureWarning, match="deprecated"):
            call()


def test_the_old_hook_gets_the_gradients_of_the_last_operation():
    class Block(nn.Module):
        def forward(self, x):
            return (x * 3).sigmoid() * 2

    seen = {}
    for kind in ("register_backward_hook", "register_full_backward_hook"):
        block, x = Block(), torch.ones(2, requires_grad=True)

        def hook(module, grad_input, grad_output, kind=kind):
            seen[kind] = grad_input[0].clone()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(block, kind)(hook)
            block(x).sum().backward()
        assert torch.equal(seen[kind], x.grad) == (kind == "register_full_backward_hook")
    assert seen["register_backward_hook"].tolist() == [2.0, 2.0]  # of `* 2` alone


HOOKED = "import torch\nclass Net(torch.nn.Module): pass\nnet = Net()\nnet.register_backward_hook(print)\n"
WRAPPED = "import torch\nclass Net:\n    def register_backward_hook(self, f): super().register_backward_hook(f)\n"


def test_the_old_hook_is_found_where_a_module_gets_it():
    assert found("import torch\nblock.register_backward_hook(print)\n") == [("deprecated-backward-hook", 2, "low")]
    assert found(HOOKED) == [("deprecated-backward-hook", 4, "high")]
    assert found(WRAPPED) == []
    assert found("import torch\nblock.register_full_backward_hook(print)\nx.register_hook(print)\n") == []


def test_data_parallel_is_of_low_confidence():
    text = "from torch import nn\nmodel = nn.DataParallel(model)\n"
    assert found(text) == [("data-parallel-module", 2, "low")]
    assert lint(text)[0].confidence is Confidence.LOW


TIMED = """\
import time
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
x = torch.randn(8, 4, device="cuda")
for _ in range(10):
    start = time.perf_counter()
    y = model(x)
    print(time.perf_counter() - start)
"""


def test_a_time_that_does_not_wait_is_found():
    assert found(TIMED) == [("timing-without-synchronise", 10, "medium")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    y = model(x)\n", "    y = model(x)\n    torch.cuda.synchronize()\n"),
        ("    y = model(x)\n", "    y = model(x).sum().item()\n"),
        ("    y = model(x)\n", "    y = work(x)\n"),
        (".cuda()", ""),
        ("    y = model(x)\n", ""),
    ],
    ids=["synchronized", "read", "unknown", "on-cpu", "nothing"],
)
def test_a_time_that_waits_is_quiet(old, new):
    assert found(TIMED.replace(old, new)) == []


def test_torchscript_is_found():
    assert found("import torch\ntraced = torch.jit.trace(model, x)\n") == [("deprecated-torchscript", 2, "low")]
    assert found("from torch import jit\nnet = jit.script(net)\n") == [("deprecated-torchscript", 2, "low")]


def test_a_test_that_a_model_can_be_scripted_is_quiet():
    assert found("import torch\ndef test_script(net):\n    torch.jit.script(net)\n") == []
    assert found("import torch\nclass A:\n    def test_it(self):\n        torch.jit.script(self.net)\n") == []
    assert found("import torch\nnet = torch.jit.load('net.pt')\nnet = torch.compile(net)\n") == []
    assert found("import torch\nmatrix.trace()\ntorch.trace(x)\nscript(net)\n") == []


@pytest.mark.parametrize("name", ["trace", "script"])
def test_torch_warns_of_torchscript(name):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        getattr(torch.jit, name)(nn.Linear(2, 2), *([torch.ones(1, 2)] if name == "trace" else []))
    assert any(f"`torch.jit.{name}` is deprecated" in str(one.message) for one in said)


def test_a_trace_keeps_numbers_of_its_example():
    class Mean(nn.Module):
        def forward(self, x):
            return x.sum(0) / float(x.shape[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Mean(), torch.ones(4, 2))
    assert torch.equal(traced(torch.ones(8, 2)), torch.full((2,), 2.0))  # eager: 1
