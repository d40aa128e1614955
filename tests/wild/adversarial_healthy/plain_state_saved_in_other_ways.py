"""Running statistics in plain attributes that are saved: as extra state, beside the state, in another file, or whole."""

import io

import torch
from torch import nn


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.mean = nn.Linear(6, 3), torch.zeros(6)

    def forward(self, x):
        if self.training:
            self.mean = 0.8 * self.mean + 0.2 * x.mean(0)
        return self.net(x - self.mean)


class Extra(Running):
    def get_extra_state(self):
        return {"mean": self.mean}

    def set_extra_state(self, state):
        self.mean = state["mean"]


class Listed(Running):
    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        state["mean"] = self.mean
        return state


def beside(model):
    torch.save({"model": model.state_dict(), "statistics": {"mean": model.mean}}, io.BytesIO())


def apart(model):
    torch.save(model.state_dict(), io.BytesIO())
    torch.save([model.mean.clone()], io.BytesIO())


def whole(model):
    torch.save(model.state_dict(), io.BytesIO())
    torch.save({"model": model}, io.BytesIO())


def state(model):
    torch.save(model.state_dict(), io.BytesIO())


torch.manual_seed(0)
x, y = 5 + torch.randn(120, 6), torch.randint(0, 3, (120,))
for model, save in ((Running(), beside), (Running(), apart), (Running(), whole), (Extra(), state), (Listed(), state)):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model.train()
    for chosen in torch.randperm(100).split(10):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print((model(x[100:]).argmax(1) == y[100:]).float().mean().item())
    save(model)
