"""The same failures in five styles of writing a loop: found in each; and the healthy loop is quiet in each."""

import re
import textwrap

import pytest

from truestep.findings import Confidence
from truestep.lint import lint

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

train_loader, val_loader = DataLoader(train_set, 8, shuffle=True), DataLoader(val_set, 8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))

"""
FLAT = """
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
for epoch in range(5):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
"""
FUNCTIONS = """
def train(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    return total


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    return right


def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    for epoch in range(5):
        train(model, train_loader, optimizer, nn.CrossEntropyLoss())
        scheduler.step()
        evaluate(model, val_loader)


main()
"""
CLASS = """
class Trainer:
    def __init__(self):
        self.model = Net()
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=5)

    def train(self):
        self.model.train()
        total = 0.0
        for x, y in train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            total += loss.item()

    def evaluate(self):
        self.model.eval()
        right = 0
        with torch.no_grad():
            for x, y in val_loader:
                right += (self.model(x).argmax(1) == y).sum().item()
        return right

    def fit(self):
        for epoch in range(5):
            self.train()
            self.scheduler.step()
            self.evaluate()


Trainer().fit()
"""
CLOSURES = """
def main():
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)

    def train():
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        return total

    def evaluate():
        model.eval()
        right = 0
        with torch.no_grad():
            for x, y in val_loader:
                right += (model(x).argmax(1) == y).sum().item()
        return right

    for epoch in range(5):
        train()
        scheduler.step()
        evaluate()


main()
"""
FRAMEWORK = """
from accelerate import Accelerator

accelerator = Accelerator()
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
model, optimizer, train_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, scheduler)
for epoch in range(5):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        accelerator.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
"""
STYLES = {"flat": FLAT, "functions": FUNCTIONS, "class": CLASS, "closures": CLOSURES, "framework": FRAMEWORK}
each_style = pytest.mark.parametrize("style", STYLES)

CLEAR = r"^ *(?:self\.)?optimizer\.zero_grad\(\)\n"
CLIP = r"^( *)nn\.utils\.clip_grad_norm_\((.*)\)\n"
BACKWARD = r"^( *)(loss\.backward\(\)|accelerator\.backward\(loss\))\n"
STEP = r"^( *)((?:self\.)?optimizer\.step\(\))\n"
MISTAKES = {
    "missing-zero-grad": [(CLEAR, "")],
    "zero-grad-before-step": [(CLEAR, ""), (STEP, r"\1{opt}.zero_grad()\n\1\2\n")],
    "clip-after-step": [(CLIP, ""), (STEP, r"\1\2\n\1nn.utils.clip_grad_norm_({model}.parameters(), 1.0)\n")],
    "clip-before-backward": [
        (CLIP, ""),
        (BACKWARD, r"\1nn.utils.clip_grad_norm_({model}.parameters(), 1.0)\n\1\2\n"),
    ],
    "functional-dropout-always-on": [
        (r"self\.head\(self\.body\(x\)\)", "self.head(F.dropout(self.body(x), 0.5))")
    ],
    "softmax-before-cross-entropy": [
        (r"return self\.head\(self\.body\(x\)\)", "return F.softmax(self.head(self.body(x)), dim=1)")
    ],
    "activation-clamps-output": [(r"return self\.head\(self\.body\(x\)\)", "return F.relu(self.head(self.body(x)))")],
    "loss-kept-with-graph": [(r"total \+= loss\.item\(\)", "total += loss")],
    "layers-in-plain-container": [
        (r"self\.body = nn\.Sequential\((.*)\)\n", r"self.body = [nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8)]\n"),
        (
            r"return self\.head\(self\.body\(x\)\)",
            "for layer in self.body:\n            x = layer(x)\n        return self.head(x)",
        ),
    ],
    "scheduler-never-stepped": [(r"^ *(?:self\.)?scheduler\.step\(\)\n", "")],
    "train-mode-not-restored": [(r"^ *(?:self\.)?model\.train\(\)\n", "")],
    "clip-before-unscale": [
        (BACKWARD, r"\1scaler.scale(loss).backward()\n"),
        (STEP, r"\1scaler.step({opt})\n\1scaler.update()\n"),
        (r"^train_loader", "scaler = torch.amp.GradScaler()\ntrain_loader"),
    ],
}  # fmt: skip


def planted(style, mistake):
    """Return a program of a style with a mistake, and without it if the mistake is None."""
    text = HEAD + STYLES[style]
    for pattern, change in MISTAKES.get(mistake, ()):
        opt, model = ("self.optimizer", "self.model") if style == "class" else ("optimizer", "model")
        changed = re.sub(
            pattern, change.replace("{opt}", opt).replace("{model}", model), text, count=1, flags=re.MULTILINE
        )
        assert changed != text, (pattern, style)
        text = changed
    compile(text, style, "exec")
    return text


def found(text, least=Confidence.MEDIUM):
    order = list(Confidence)
    return {one.rule for one in lint(text) if order.index(one.confidence) <= order.index(least)}


@each_style
def test_healthy_loop_is_quiet(style):
    assert found(planted(style, None), Confidence.LOW) == set()


@each_style
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_found(style, mistake):
    assert found(planted(style, mistake)) == {mistake}


def test_loop_over_epochs_around_the_call_that_clears():
    text = planted("functions", "missing-zero-grad")
    text = text.replace("    model.train()\n", "    optimizer.zero_grad()\n    model.train()\n", 1)
    assert "missing-zero-grad" not in found(text)


@pytest.mark.parametrize(
    "clears",
    [
        "model.zero_grad()", "for p in model.parameters():\n            p.grad = None",
        "for p in model.parameters():\n            p.grad.zero_()", "helper(optimizer)", "clear_gradients(optimizer)",
        "optimizer.zero_grad(set_to_none=False)", "for o in optimizers:\n            o.zero_grad()",
    ],
)  # fmt: skip
def test_every_way_of_clearing_counts(clears):
    text = planted("flat", None).replace("optimizer.zero_grad()", clears, 1)
    assert found(text, Confidence.LOW) == set()


def test_finding_names_line_function_and_causes():
    (one,) = lint(planted("class", "clip-after-step"), "train.py")
    assert one.primary.site.path == "train.py"
    assert one.primary.site.function == "Trainer.train"
    text = planted("class", "clip-after-step").splitlines()
    assert text[one.primary.site.line - 1].strip().startswith("nn.utils.clip_grad_norm_")
    assert text[one.related[0].site.line - 1].strip() == "self.optimizer.step()"
    assert str(one.seen) == "in the syntax"


def test_methods_that_are_named_and_not_called():
    text = textwrap.dedent(
        """
        import torch
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters())
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward
            optimizer.step()
        """
    )
    assert found(text) == {"step-without-backward"}


def test_state_dict_of_another_function_is_no_copy_of_the_loaded_one():
    text = planted("flat", None) + textwrap.dedent(
        """
            if right > 3:
                state = model.state_dict()
                torch.save(state, "best.pt")


        def load():
            state = torch.load("best.pt")
            model.load_state_dict(state)
        """
    )
    assert found(text) == set()


def test_step_of_a_wrapper_is_left_to_its_callers():
    text = textwrap.dedent(
        """
        import torch

        class Scaler:
            def __init__(self):
                self._scaler = torch.amp.GradScaler()

            def __call__(self, loss, optimizer):
                self._scaler.scale(loss).backward()
                self._scaler.step(optimizer)
                self._scaler.update()
        """
    )
    assert found(text) == set()


def test_seed_of_an_evaluation_is_left_alone():
    text = planted("functions", None).replace("    right = 0\n", "    right = 0\n    torch.manual_seed(1)\n")
    assert found(text) == set()
