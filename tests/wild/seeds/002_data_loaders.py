"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
sections The data, and Reproducibility: a loader with workers, the seeds, and a loader with a generator and a worker seed.

Repaired: lost indentation; data; two epochs of reading. Expected: nothing: the worker seed would repeat numpy's random
numbers in every epoch, but a TensorDataset draws none.
"""
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed: int = 42):
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    np.random.seed(seed)
    random.seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


set_seed(42)
X_train, y_train = torch.randn(2000, 2), torch.randint(0, 3, (2000,))

dataset = TensorDataset(X_train, y_train)
loader = DataLoader(
    dataset,
    batch_size=64,
    shuffle=True,
    num_workers=2,
    pin_memory=True,
    persistent_workers=True,
)
for epoch in range(2):
    print([y[:4].tolist() for _, y in loader][0])

g = torch.Generator()
g.manual_seed(42)

loader = DataLoader(
    dataset,
    batch_size=64,
    shuffle=True,
    num_workers=2,
    generator=g,
    worker_init_fn=lambda worker_id: np.random.seed(42 + worker_id),
)
for epoch in range(2):
    print([y[:4].tolist() for _, y in loader][0])
