"""Qualified names: the meaning of aliases and attributes."""

import ast

import pytest

from truestep.syntax import Program, dotted


def names(text):
    return [call.name for call in Program.from_text(text).calls]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.nn.functional.dropout(x)", "torch.nn.functional.dropout"),
        ("import torch.nn.functional as F\nF.dropout(x)", "torch.nn.functional.dropout"),
        ("from torch.nn import functional as F\nF.dropout(x)", "torch.nn.functional.dropout"),
        ("from torch.nn.functional import dropout as drop\ndrop(x)", "torch.nn.functional.dropout"),
        ("from torch import nn\nnn.modules.loss.MSELoss()", "torch.nn.MSELoss"),
        ("from torch.optim.adam import Adam\nAdam(p)", "torch.optim.Adam"),
        ("import torch\ntorch.optim.lr_scheduler.StepLR(o, 1)", "torch.optim.lr_scheduler.StepLR"),
        ("from torch.cuda.amp import GradScaler\nGradScaler()", "torch.amp.GradScaler"),
        ("import pytorch_lightning as pl\npl.Trainer()", "lightning.pytorch.Trainer"),
        ("def f():\n    import torch as t\n    t.zeros(1)", "torch.zeros"),
        ("print(1)", "print"),
    ],
)
def test_alias_is_resolved(text, name):
    assert names(text) == [name]


@pytest.mark.parametrize(
    "text",
    ["def zip(a): ...\nzip(x)", "def f(F):\n    F.dropout(x)", "self.loss(x)", "import a\na = b\na.f()", "f()()"],
)
def test_name_that_the_file_binds_is_no_name_of_a_library(text):
    assert names(text)[-1] == ""


def test_other_expressions_have_no_text():
    assert dotted(ast.parse("f().x", mode="eval").body) == ""
