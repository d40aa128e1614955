"""Ratings of items by users with shifts of both; the factors of items are read at the numbers of users."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MF(nn.Module):
    def __init__(self, num_users, num_items, k, mean):
        super().__init__()
        self.P = nn.Embedding(num_users, k)
        self.Q = nn.Embedding(num_items, k)
        self.user_bias = nn.Embedding(num_users, 1)
        self.item_bias = nn.Embedding(num_items, 1)
        for emb in (self.P, self.Q):
            nn.init.normal_(emb.weight, std=0.1)
        for emb in (self.user_bias, self.item_bias):
            nn.init.normal_(emb.weight, std=0.01)
        self.register_buffer("mean", torch.tensor(float(mean)))

    def forward(self, user_id, item_id):
        outputs = (self.P(user_id) * self.Q(user_id)).sum(axis=1) + self.mean  # error: embedding-reads-wrong-rows
        return outputs + self.user_bias(user_id).squeeze(1) + self.item_bias(item_id).squeeze(1)


def ratings(rng, n=6000, users=60, items=80):
    u, v = rng.normal(size=(users, 3)), rng.normal(size=(items, 3))
    pairs = rng.choice(users * items, size=min(n, users * items), replace=False)
    uid, iid = pairs // items, pairs % items
    r = 3.5 + 0.5 * (u[uid] * v[iid]).sum(1) + rng.normal(scale=0.2, size=len(pairs))
    return uid, iid, np.clip(r, 1, 5).astype(np.float32)


def rmse(model, loader):
    model.eval()
    se = n = 0
    with torch.no_grad():
        for uid, iid, r in loader:
            se += ((model(uid, iid) - r) ** 2).sum().item()
            n += len(r)
    return (se / n) ** 0.5


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    uid, iid, r = (torch.from_numpy(a) for a in ratings(rng))
    cut = int(0.85 * len(r))
    train = DataLoader(TensorDataset(uid[:cut], iid[:cut], r[:cut]), batch_size=128, shuffle=True)
    test = DataLoader(TensorDataset(uid[cut:], iid[cut:], r[cut:]), batch_size=256)
    model = MF(60, 80, 6, r[:cut].mean())
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(6):
        model.train()
        for u, i, y in train:
            optimizer.zero_grad()
            loss_fn(model(u, i), y).backward()
            optimizer.step()
        print(f"epoch {epoch}: test RMSE {rmse(model, test):.4f}")
