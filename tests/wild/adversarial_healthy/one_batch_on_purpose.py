"""One batch at a time on purpose: overfitting a batch, a dry run, pictures of an epoch, random batches for every step."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
DRY_RUN = True
x = torch.randn(200, 6)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, batch_size=20, shuffle=True)
held_out = DataLoader(TensorDataset(x[:40], (x[:40, 0] > 0).long()), batch_size=10)


def build():
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def example_predictions(model):
    with torch.no_grad():
        for inputs, labels in held_out:
            guesses = model(inputs).argmax(1)
            return inputs[:2], guesses[:2]


def test(model):
    correct = 0
    with torch.no_grad():
        for inputs, labels in held_out:
            correct += (model(inputs).argmax(1) == labels).sum().item()
    return correct / 40


model, optimizer = build()
for _ in range(30):  # can it learn one batch at all?
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        break

model, optimizer = build()
for epoch in range(5):
    for index, (inputs, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if DRY_RUN:
            break
    print(epoch, test(model), example_predictions(model)[1])

model, optimizer = build()
for iteration in range(60):
    inputs, labels = next(iter(loader))
    step(model, optimizer, inputs, labels)
    if iteration % 10 == 9:
        print(iteration, test(model))
