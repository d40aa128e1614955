"""Sums divided by numbers that are called sizes: sums over samples, and means of draws that the loop makes."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(600, 10)
labels = (rows[:, :3].sum(1) > 0).long()
parts = {"train": TensorDataset(rows[:440], labels[:440]), "val": TensorDataset(rows[440:], labels[440:])}
loaders = {name: DataLoader(part, batch_size=40, shuffle=name == "train") for name, part in parts.items()}
dataset_sizes = {name: len(part) for name, part in parts.items()}
num_batches = {name: len(loader) for name, loader in loaders.items()}
test_samples = 50
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 2))
criterion, summed = nn.CrossEntropyLoss(), nn.CrossEntropyLoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(6):
    for phase in ("train", "val"):
        model.train(phase == "train")
        running_loss, total, mean_loss, right = 0.0, 0.0, 0.0, 0
        for batch, wanted in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(batch)
                loss = criterion(outputs, wanted)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * batch.size(0)
            total += summed(outputs, wanted).item()
            mean_loss += loss.item()
            right += (outputs.argmax(1) == wanted).sum().item()
        size = dataset_sizes[phase]
        print(phase, running_loss / dataset_sizes[phase], total / size, mean_loss / num_batches[phase], right / size)
drawn = 0.0
model.train()
with torch.no_grad():
    for _ in range(test_samples):
        drawn += criterion(model(rows[440:470]), labels[440:470]).item()
print("mean over draws", drawn / test_samples)
