"""Each worker loads a vocabulary in its init function, for each of fourteen epochs."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
vocabulary = {}


def worker_init_fn(worker_id):
    time.sleep(0.55)
    vocabulary.update({str(n): n for n in range(1000)})


def collate(samples):
    x, y = zip(*samples)
    return {"ids": torch.stack(x), "labels": torch.stack(y)}


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(50, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(self.embedding(ids))


ids = torch.randint(0, 50, (96, 6))
dataset = TensorDataset(ids, (ids[:, 0] > 25).long())
options = dict(batch_size=16, shuffle=True, num_workers=2, worker_init_fn=worker_init_fn, collate_fn=collate)
train_loader = DataLoader(dataset, **options)  # error: workers-respawned
model = Bag()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(14):
    total = 0.0
    for batch in train_loader:
        loss = nn.functional.cross_entropy(model(batch["ids"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(train_loader))
