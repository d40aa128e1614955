"""From "PyTorch Training", section nn.Module: layers in a plain list, and in an nn.ModuleList.

Repaired: lost indentation; the two `forward` methods and the backward passes are missing in the document, which
says that training on the first model runs and nothing crashes: building an optimizer for it raises instead.
Expected: nothing silent: the optimizer refuses the first model by itself, so there is no finding.
"""
import torch
import torch.nn as nn

torch.set_num_threads(1)


# BROKEN: parameters invisible to optimizer
class BadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(10, 10) for _ in range(3)]  # plain list!

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# CORRECT: use nn.ModuleList
class GoodModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(10, 10) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


for model in (BadModel(), GoodModel()):
    print(type(model).__name__, len(list(model.parameters())))
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    except ValueError as error:
        print("ValueError:", error)
        optimizer = None
    for step in range(5):
        loss = model(torch.randn(8, 10)).pow(2).mean()
        if optimizer is not None:
            optimizer.zero_grad()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
