"""Two-tower retrieval: EmbeddingBag features, in-batch softmax with logQ correction, FM interaction, recall@k."""
import collections
import torch
import torch.nn as nn
import torch.nn.functional as F

N_USER, N_ITEM, N_TAG, DIM = 120, 80, 30, 12
Interaction = collections.namedtuple("Interaction", "user item tags offsets logq")


class Tower(nn.Module):
    def __init__(self, n, tags=False):
        super().__init__()
        self.id = nn.Embedding(n, DIM)
        self.bag = nn.EmbeddingBag(N_TAG, DIM, mode="sum") if tags else None
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.ReLU(), nn.Linear(2 * DIM, DIM))

    def forward(self, ids, tags=None, offsets=None):
        v = self.id(ids)
        if self.bag is not None:
            w = self.bag(tags, offsets)
            v = v * w + v + w  # factorisation-machine style
        return F.normalize(self.mlp(v), dim=-1)


class World:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.g = g
        self.taste = torch.randint(0, 6, (N_USER,), generator=g)
        self.genre = torch.randint(0, 6, (N_ITEM,), generator=g)
        self.tags = [torch.tensor([int(k), 6 + int(torch.randint(0, 24, (1,), generator=g))]) for k in self.genre]
        self.popularity = torch.rand(N_ITEM, generator=g) + 0.1

    def sample(self, n):
        users = torch.randint(0, N_USER, (n,), generator=self.g)
        w = self.popularity * torch.where(self.genre[None] == self.taste[users][:, None], 10.0, 0.3)
        items = torch.multinomial(w, 1, generator=self.g).squeeze(1)
        lists = [self.tags[i] for i in items.tolist()]
        offsets = torch.tensor([0] + [len(l) for l in lists[:-1]]).cumsum(0)
        return Interaction(users, items, torch.cat(lists), offsets, self.popularity[items].log())


def main():
    torch.manual_seed(5)
    world = World(5)
    towers = nn.ModuleDict({"user": Tower(N_USER), "item": Tower(N_ITEM, tags=True)})
    tau = nn.Parameter(torch.tensor(2.0))
    opt = torch.optim.Adagrad([{"params": towers.parameters()}, {"params": [tau], "lr": 0.01}], lr=0.08)
    for step in range(201):
        b = world.sample(64)
        u, v = towers["user"](b.user), towers["item"](b.item, b.tags, b.offsets)
        logits = u @ v.T * tau.exp() - b.logq
        same = (b.item[:, None] == b.item[None]) & ~torch.eye(64, dtype=torch.bool)
        logits = logits.masked_fill(same, float("-inf"))
        loss = F.cross_entropy(logits, torch.arange(64))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            with torch.no_grad():
                off = torch.tensor([0] + [len(l) for l in world.tags[:-1]]).cumsum(0)
                index = towers["item"](torch.arange(N_ITEM), torch.cat(world.tags), off)
                top = (towers["user"](torch.arange(N_USER)) @ index.T).topk(5).indices
                hit = (world.genre[top] == world.taste[:, None]).float().mean()
            print(f"{step:4d} loss {loss.item():.3f} precision@5 {hit:.3f} tau {tau.item():.2f}")


if __name__ == "__main__":
    main()
