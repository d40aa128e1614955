"""Three classes of CIFAR-10 that are not equally frequent, with augmentation and a weighted sampler."""

import os
import pickle
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

ROOT = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "cifar10-subset", "cifar-10-batches-py")
CLASSES = {1: "automobile", 7: "horse", 8: "ship"}
TRAIN_COUNTS = {1: 420, 7: 140, 8: 280}
VAL_COUNTS = {1: 90, 7: 30, 8: 60}
TEST_COUNTS = {1: 180, 7: 60, 8: 120}
EPOCHS = 10


def load(*names):
    data, labels = [], []
    for name in names:
        with open(os.path.join(ROOT, name), "rb") as file:
            batch = pickle.load(file, encoding="latin1")
        data.append(batch["data"])
        labels += batch["labels"]
    return np.concatenate(data).reshape(-1, 3, 32, 32), np.array(labels)


def pick(images, labels, counts, skip=0):
    index = np.concatenate([np.flatnonzero(labels == c)[skip : skip + n] for c, n in counts.items()])
    names = {c: i for i, c in enumerate(CLASSES)}
    return images[index], np.array([names[c] for c in labels[index].tolist()])


class RandomCrop:
    def __init__(self, size, padding):
        self.size, self.padding = size, padding

    def __call__(self, image):
        image = nn.functional.pad(image, [self.padding] * 4)
        top, left = torch.randint(0, 2 * self.padding + 1, (2,)).tolist()
        return image[:, top : top + self.size, left : left + self.size]


class RandomHorizontalFlip:
    def __call__(self, image):
        return image.flip(2) if torch.rand(1).item() < 0.5 else image


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean, dtype=torch.float32).view(3, 1, 1)
        self.std = torch.tensor(std, dtype=torch.float32).view(3, 1, 1)

    def __call__(self, image):
        return (image - self.mean) / self.std


class Compose:
    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ImageDataset(Dataset):
    def __init__(self, images, labels, transform):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float() / 255
        return self.transform(image), int(self.labels[index])


def build_model():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        nn.AvgPool2d(2), *block(3, 16), *block(16, 32), *block(32, 32), nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 3)
    )


def train_epoch(model, loader, criterion, optimizer, scheduler):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(labels)
    return total / len(loader.sampler)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    hits, counts = Counter(), Counter()
    for images, labels in loader:
        predictions = model(images).argmax(dim=1)
        counts.update(labels.tolist())
        hits.update(labels[predictions == labels].tolist())
    recalls = [hits[c] / counts[c] for c in range(len(CLASSES))]
    return sum(hits.values()) / sum(counts.values()), sum(recalls) / len(recalls)


def main():
    torch.manual_seed(5)
    images, labels = load("data_batch_1", "data_batch_2", "data_batch_3")
    train_images, train_labels = pick(images, labels, TRAIN_COUNTS)
    val_images, val_labels = pick(images, labels, VAL_COUNTS, skip=450)
    test_images, test_labels = pick(*load("test_batch"), TEST_COUNTS)

    scaled = train_images / 255
    normalize = Normalize(scaled.mean(axis=(0, 2, 3)), scaled.std(axis=(0, 2, 3)))
    train_set = ImageDataset(
        train_images, train_labels, Compose(RandomCrop(32, padding=3), RandomHorizontalFlip(), normalize)
    )
    val_set = ImageDataset(val_images, val_labels, normalize)
    test_set = ImageDataset(test_images, test_labels, normalize)

    frequency = np.bincount(train_labels)
    sampler = WeightedRandomSampler(1.0 / frequency[train_labels], num_samples=len(train_set))
    train_loader = DataLoader(train_set, batch_size=40, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=100)
    test_loader = DataLoader(test_set, batch_size=100)

    model = build_model()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
    for epoch in range(EPOCHS):
        loss = train_epoch(model, train_loader, criterion, optimizer, scheduler)
        accuracy, balanced = validate(model, val_loader)
        print(f"epoch {epoch}: loss {loss:.4f} val accuracy {accuracy:.4f} balanced {balanced:.4f}")
    accuracy, balanced = validate(model, test_loader)
    print(f"test accuracy {accuracy:.4f} balanced {balanced:.4f}")


if __name__ == "__main__":
    main()
