"""A linear range test, metrics with their direction, a frozen net with gradients for a map, and names of one model."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

torch.manual_seed(0)
x = torch.randn(300, 6)
y = (x[:, 0] + x[:, 1] > 0).long()


def build():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


class Trainer:
    def __init__(self, model):
        self.model, self.target = model, "class"
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def update(self, index):
        with torch.no_grad():
            before = self.model(x[index]).argmax(1)
        loss = nn.functional.cross_entropy(self.model(x[index]), y[index])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return before


tested = build()
searched = torch.optim.SGD(tested.parameters(), lr=1e-3)
ramp = LambdaLR(searched, lambda step: 1.0 + step)
for _ in range(100):
    searched.zero_grad()
    nn.functional.cross_entropy(tested(x), y).backward()
    searched.step()
    ramp.step()

student = net = build()
trainer = Trainer(net)
falling, rising = ReduceLROnPlateau(trainer.optimizer), ReduceLROnPlateau(trainer.optimizer, mode="max")
lower = ReduceLROnPlateau(trainer.optimizer)
for epoch in range(8):
    warm = min(1.0, (epoch + 1) / 3)
    trainer.optimizer.param_groups[0]["lr"] = 0.1 * warm
    for index in torch.randperm(240).split(40):
        trainer.update(index)
    with torch.no_grad():
        logits = net(x[240:])
        loss = nn.functional.cross_entropy(logits, y[240:]).item()
        accuracy = (logits.argmax(1) == y[240:]).float().mean().item()
    falling.step(loss)
    rising.step(accuracy)
    lower.step(1 - accuracy)

net.requires_grad_(False)
head = nn.Linear(2, 2)
adapted = torch.optim.Adam(head.parameters(), lr=1e-2)
for _ in range(20):
    adapted.zero_grad()
    nn.functional.cross_entropy(head(net(x)), y).backward()
    adapted.step()
shown = x[:4].clone().requires_grad_(True)
net.requires_grad_(True)
net(shown).sum().backward()
print(shown.grad.abs().mean())
