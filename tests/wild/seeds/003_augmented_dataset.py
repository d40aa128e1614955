"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Enhancing Data Diversity.

Repaired: the first comment's sign; torchvision and Pillow, which are not here, replaced by three small transforms and one
generated image; 2 workers kept. Expected: nothing. With one path the batch has shape (1, 3, 224, 224), not (4, ...).
"""
# io.thecodeforge: ml-ai tutorial

import torch
from torch.utils.data import Dataset, DataLoader


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, img):
        for step in self.steps:
            img = step(img)
        return img


class RandomHorizontalFlip:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        return img.flip(-1) if torch.rand(1) < self.p else img


class ColorJitter:
    def __init__(self, brightness, contrast):
        self.brightness, self.contrast = brightness, contrast

    def __call__(self, img):
        img = img * torch.empty(1).uniform_(1 - self.brightness, 1 + self.brightness)
        return (img - img.mean()) * torch.empty(1).uniform_(1 - self.contrast, 1 + self.contrast) + img.mean()


def open_image(path):
    return torch.rand(3, 224, 224)


class AugmentedDataset(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.train_transform = Compose([
            RandomHorizontalFlip(p=0.5),
            ColorJitter(brightness=0.2, contrast=0.2),
        ])

    def __getitem__(self, idx):
        img = open_image(self.paths[idx])
        return self.train_transform(img)

    def __len__(self):
        return len(self.paths)


dl = DataLoader(AugmentedDataset(['img1.jpg']), batch_size=4, num_workers=2)
for batch in dl:
    print(batch.shape)
