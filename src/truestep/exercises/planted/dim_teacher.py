"""Read threes with a network that never sees one, taught by a larger network."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HIDDEN, TEMPERATURE = 3, 4.0

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

pixels, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels))
images, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]
seen = labels[:1300] != HIDDEN
all_digits = DataLoader(TensorDataset(images[:1300], labels[:1300]), batch_size=64, shuffle=True)
without_threes = DataLoader(TensorDataset(images[:1300][seen], labels[:1300][seen]), batch_size=64, shuffle=True)


def network(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


teacher, student = network(256), network(24)
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(20):
    for x, y in all_digits:
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(x), y).backward()
        optimizer.step()

teacher.eval()
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(1, 41):
    total = 0.0
    for x, _ in without_threes:
        with torch.no_grad():
            softened = (teacher(x) / TEMPERATURE).softmax(dim=1)
        own = (student(x) / TEMPERATURE).log_softmax(dim=1)
        optimizer.zero_grad()
        loss = TEMPERATURE**2 * nn.functional.kl_div(own, softened, reduction="batchmean", log_target=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 8 == 0:
        print(f"epoch {epoch}: loss {total / len(without_threes):.3f}")

student.eval()
with torch.no_grad():
    correct = (student(images[1300:]).argmax(dim=1) == labels[1300:]).float()
threes = labels[1300:] == HIDDEN
print(f"other digits recognised: {correct[~threes].mean():.4f}")
print(f"threes recognised: {correct[threes].mean():.4f}")
