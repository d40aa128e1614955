"""From "PyTorch Training", section Dataset and DataLoader: the fix for workers that share a seed.

Repaired: lost indentation; imports; a dataset that augments with numpy, as the section says; 4 workers -> 2; two
epochs of reading. Expected: the workers differ from each other with and without the fix, and with it every epoch
gets the same noise, because new workers start with the same seed each epoch.
"""
import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader


class NoisyReviews(Dataset):
    def __init__(self):
        self.features = torch.rand(8, 4)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        noise = np.random.normal(0.0, 0.1, size=4)
        return self.features[idx] + torch.tensor(noise, dtype=torch.float32)


dataset = NoisyReviews()


def worker_init(worker_id):
    np.random.seed(42 + worker_id)  # silent: the streams of one epoch differ, those of two epochs are equal


loader = DataLoader(dataset, num_workers=2, worker_init_fn=worker_init)
epochs = [torch.cat(list(loader)) for _ in range(2)]
print("every epoch augments alike:", torch.equal(epochs[0], epochs[1]))
