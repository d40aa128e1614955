"""The two programs of `lab.py`: the lab as its author intended it, and the same model trained with the toolkit.

Each runs in a separate process, reads the files, trains, and prints after every epoch how many of the 10,000 test
images it classifies correctly. Reading, normalising and testing are part of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

Accuracies = Iterator[float]


class FashionClassifier(nn.Module):
    """The lab's model: 269,322 parameters."""

    def __init__(self, hidden_dim: int = 256) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def to_tensor(image: Image.Image) -> torch.Tensor:
    """Convert a Pillow image of bytes like `torchvision.transforms.ToTensor`, without its checks."""
    made = torch.from_numpy(numpy.array(image, numpy.uint8, copy=True))
    made = made.view(image.size[1], image.size[0], 1).permute((2, 0, 1)).contiguous()
    return made.to(dtype=torch.get_default_dtype()).div(255)


def normalize(made: torch.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> torch.Tensor:
    """Normalise like `torchvision.transforms.Normalize`, without its checks of the arguments."""
    made = made.clone()
    means = torch.as_tensor(mean, dtype=made.dtype, device=made.device)
    stds = torch.as_tensor(std, dtype=made.dtype, device=made.device)
    if (stds == 0).any():
        raise ValueError("std is 0")
    return made.sub_(means.view(-1, 1, 1)).div_(stds.view(-1, 1, 1))


class FashionMNIST(Dataset):
    """A copy of `torchvision.datasets.FashionMNIST`: bytes in memory, a Pillow image per item, transformed."""

    def __init__(self, folder: Path, part: str) -> None:
        from truestep.data.idx_files import read_idx

        self.data = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
        self.targets = read_idx(folder / f"{part}-labels-idx1-ubyte.gz").long()

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image, target = self.data[index], int(self.targets[index])
        return normalize(to_tensor(Image.fromarray(image.numpy())), (0.2860,), (0.3530,)), target


def lab(folder: Path, seed: int, epochs: int) -> Accuracies:
    """Train as the lab does: batch 64, Adam at 1e-3, samples read one by one in this process."""
    torch.manual_seed(seed)
    train_loader = DataLoader(FashionMNIST(folder, "train"), batch_size=64, shuffle=True)
    test_loader = DataLoader(FashionMNIST(folder, "t10k"), batch_size=64, shuffle=False)
    model = FashionClassifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        model.train()
        total_loss, correct, total = 0.0, 0.0, 0
        for images, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * labels.size(0)
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)
        model.eval()
        total_loss, correct, total = 0.0, 0.0, 0
        with torch.no_grad():
            for images, labels in test_loader:
                outputs = model(images)
                loss = criterion(outputs, labels)
                total_loss += loss.item() * labels.size(0)
                correct += (outputs.argmax(1) == labels).sum().item()
                total += labels.size(0)
        yield correct / total


def toolkit(folder: Path, seed: int, epochs: int, *, lr: float, batch_size: int, precision: str) -> Accuracies:
    """Train the same model with the toolkit: images normalised once, batches by index, fused Adam, a schedule."""
    import truestep as ts

    run = ts.Run(seed=seed, max_epochs=epochs, precision=precision)
    normal = {"mean": 0.2860, "std": 0.3530}
    images = ts.data.idx(folder / "train-images", folder / "train-labels", **normal)
    train = run.loader(images, batch_size=batch_size, shuffle=True)
    test = run.loader(ts.data.idx(folder / "t10k-images", folder / "t10k-labels", **normal), batch_size=1000)
    model = run.model(FashionClassifier())
    criterion = nn.CrossEntropyLoss()
    optimizer = run.optimizer(torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98), fused=True))
    run.scheduler(ts.schedules.warmup_linear(optimizer, warmup=0.05))
    for _ in run.epochs():
        for x, y in run.train(train, model):
            with run.autocast():
                loss = criterion(model(x), y)
            run.step(loss)
        with run.evaluate(model):
            right = sum(((model(x).argmax(1) == y).sum() for x, y in run.batches(test)), torch.zeros(()))
        yield right.item() / len(test.dataset)


PROGRAMS: dict[str, Callable[[Path, int], Accuracies]] = {
    "the lab's script": lambda folder, seed: lab(folder, seed, 25),
    "toolkit": lambda folder, seed: toolkit(folder, seed, 4, lr=2e-3, batch_size=192, precision="fp32"),
    "toolkit, bf16": lambda folder, seed: toolkit(folder, seed, 4, lr=2e-3, batch_size=192, precision="bf16"),
}
