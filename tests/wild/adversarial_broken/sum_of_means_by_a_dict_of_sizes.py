"""The loop of a tutorial with phases: means of batches are added up, and the sum is divided by the number of samples."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(600, 10)
labels = (rows[:, :3].sum(1) > 0).long()
parts = {"train": TensorDataset(rows[:440], labels[:440]), "val": TensorDataset(rows[440:], labels[440:])}
loaders = {name: DataLoader(part, batch_size=40, shuffle=name == "train") for name, part in parts.items()}
data_sizes = {name: len(part) for name, part in parts.items()}
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(8):
    for phase in ("train", "val"):
        model.train(phase == "train")
        running_loss, right = 0.0, 0
        for batch, wanted in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(batch)
                loss = criterion(outputs, wanted)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item()
            right += (outputs.argmax(1) == wanted).sum().item()
        epoch_loss = running_loss / data_sizes[phase]  # error: metric-misreported
        print(phase, f"{epoch_loss:.5f} {right / data_sizes[phase]:.3f}")
