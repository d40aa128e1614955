"""Classify FashionMNIST as a first course has it: images read and normalised one by one, a checkpoint every epoch."""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--images", type=int, default=6000, help="of the training set")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--resume", type=Path, help="checkpoint to go on from")
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def read(name, header):
    with gzip.open(args.data / "fashion-mnist" / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8)[header:]


class FashionMNIST(Dataset):
    def __init__(self, prefix, limit):
        self.images = read(f"{prefix}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:limit]
        self.labels = read(f"{prefix}-labels-idx1-ubyte.gz", 8)[:limit]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.tensor(self.images[index].copy()).unsqueeze(0).float() / 255
        image = (image - 0.2860) / 0.3530
        return image, int(self.labels[index])


train_loader = DataLoader(FashionMNIST("train", args.images), batch_size=64, shuffle=True)
test_loader = DataLoader(FashionMNIST("t10k", 2000), batch_size=64)

model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 256),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(256, 256),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(256, 10),
).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

if args.resume and args.resume.exists():
    checkpoint = torch.load(args.resume)
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])

for epoch in range(args.epochs):
    model.train()
    total_loss, total = 0.0, 0
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(labels)
        total += len(labels)

    model.eval()
    correct, seen = 0, 0
    with torch.no_grad():
        for images, labels in test_loader:
            images, labels = images.to(device), labels.to(device)
            correct += (model(images).argmax(1) == labels).sum().item()
            seen += len(labels)
    print(f"epoch {epoch + 1}: train loss {total_loss / total:.4f}, test accuracy {correct / seen:.4f}")

    torch.save(
        {"model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict()},
        "fashion.pth",
    )
