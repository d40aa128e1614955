"""Healthy programs in the style of other people's code in which an earlier version saw a failure."""

import textwrap

import pytest

from truestep.lint import lint

HEALTHY = {
    "a scaler with its steps in one call, whose caller clears the gradients": """
        import torch

        class Scaler:
            def __init__(self):
                self.scaler = torch.amp.GradScaler()

            def __call__(self, loss, optimizer, update=True):
                self.scaler.scale(loss).backward()
                if update:
                    self.scaler.step(optimizer)
                    self.scaler.update()
    """,
    "a checkpoint and the weights to start from are two variables of one name": """
        import torch

        def train(model, loader, optimizer: torch.optim.Optimizer, path):
            for epoch in range(3):
                for x, y in loader:
                    optimizer.zero_grad()
                    torch.nn.functional.mse_loss(model(x), y).backward()
                    optimizer.step()
                if path:
                    state = model.state_dict()
                    torch.save(state, path)

        def start(model, path):
            state = torch.load(path)
            model.load_state_dict(state)
    """,
    "a batch of a tokenizer moves in place": """
        from torch.utils.data import DataLoader

        def evaluate(model, data, device):
            loader = DataLoader(data, 8)
            for step, batch in enumerate(loader):
                batch.to(device)
                print(model(**batch))
    """,
}
BROKEN = {
    "missing-zero-grad": """
        import torch

        def train_step(model, x, y, optimizer: torch.optim.Optimizer):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    """,
    "best-weights-aliased": """
        import torch

        def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer, score):
            best = 0.0
            for epoch in range(3):
                for x, y in loader:
                    optimizer.zero_grad()
                    torch.nn.functional.mse_loss(model(x), y).backward()
                    optimizer.step()
                if score(model) > best:
                    best = score(model)
                    state = model.state_dict()
            model.load_state_dict(state)
    """,
    "result-never-read": """
        from torch.utils.data import DataLoader

        def evaluate(model, data, device):
            loader = DataLoader(data, 8)
            for step, (x, y) in enumerate(loader):
                x.to(device)
                print(model(x), y)
    """,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_has_no_finding_of_the_rule_that_was_wrong(name):
    found = {one.rule for one in lint(textwrap.dedent(HEALTHY[name]))}

    assert not found & set(BROKEN)


@pytest.mark.parametrize("rule", BROKEN)
def test_the_failure_is_still_found(rule):
    assert rule in {one.rule for one in lint(textwrap.dedent(BROKEN[rule]))}
