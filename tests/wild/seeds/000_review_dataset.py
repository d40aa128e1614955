"""From "PyTorch Training", section Dataset and DataLoader: a dataset read from a CSV file, and a loader with workers.

Repaired: lost indentation; a small CSV file is written first; pandas replaced by numpy; 4 workers -> 2; two epochs
of reading added so that the loader is used. Expected: nothing.
"""
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader


class ReviewDataset(Dataset):
    def __init__(self, csv_path):
        df = np.genfromtxt(csv_path, delimiter=',', names=True)
        features = np.stack([df[name] for name in df.dtype.names if name != 'label'], axis=1)
        self.features = torch.tensor(features, dtype=torch.float32)
        self.labels = torch.tensor(df['label'], dtype=torch.long)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        return self.features[idx], self.labels[idx]


folder = tempfile.TemporaryDirectory()
csv_path = os.path.join(folder.name, 'reviews.csv')
rows = np.random.rand(400, 4)
with open(csv_path, 'w') as file:
    file.write('a,b,c,d,label\n')
    for row in rows:
        file.write(','.join(f'{value:.4f}' for value in row) + f',{int(row[0] > row[1])}\n')

train_dataset = ReviewDataset(csv_path)
train_loader = DataLoader(
    dataset=train_dataset,
    batch_size=64,
    shuffle=True,             # randomize order each epoch
    num_workers=2,            # parallel loading processes
    pin_memory=True,          # page-locked memory for faster GPU transfer
    prefetch_factor=2,        # batches prefetched per worker
    persistent_workers=True,  # keep workers alive between epochs
    drop_last=True,           # drop incomplete final batch
)
for epoch in range(2):
    seen = sum(len(labels) for _, labels in train_loader)
    print(f"Epoch {epoch}: {seen} of {len(train_dataset)} samples")
