"""Batches of odd kinds: strings, None, numpy, PackedSequence, UserDict with attributes, sets of graphs, gradients and a model inside the data set."""
import collections
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, PackedSequence
from torch.utils.data import DataLoader, Dataset


class Encoding(collections.UserDict):
    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name)

    def to(self, device):
        return Encoding({k: v.to(device) if hasattr(v, "to") else v for k, v in self.data.items()})


class Graph:
    def __init__(self, **kw):
        self.__dict__.update(kw)

    def __eq__(self, other):
        return torch.equal(self.x, other.x)


class Words(Dataset):
    def __init__(self, n, kind):
        g = torch.Generator().manual_seed(n)
        self.seqs = [torch.randint(0, 9, (int(k),), generator=g) for k in torch.randint(2, 7, (n,), generator=g)]
        self.kind = kind

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return self.seqs[i], int(self.seqs[i].float().mean() > 4)


def collate(kind):
    def packed(items):
        return pack_sequence([s for s, _ in items], enforce_sorted=False), torch.tensor([y for _, y in items])

    def encoding(items):
        return Encoding(text=["".join(map(str, s.tolist())) for s, _ in items], ids=nn.utils.rnn.pad_sequence([s + 1 for s, _ in items], batch_first=True),
                        labels=torch.tensor([y for _, y in items]), mask=None)

    def arrays(items):
        return np.array([np.bincount(s.numpy(), minlength=9) for s, _ in items], dtype=np.float32), np.array([y for _, y in items])

    def graph(items):
        return Graph(x=torch.cat([s for s, _ in items]), batch=torch.cat([torch.full((len(s),), k) for k, (s, _) in enumerate(items)]), y=torch.tensor([y for _, y in items]))

    return locals()[kind]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 12, padding_idx=0)
        self.rnn = nn.GRU(12, 12)
        self.out = nn.Linear(12, 2)

    def forward(self, b):
        if isinstance(b, PackedSequence):
            _, h = self.rnn(b._replace(data=self.emb(b.data + 1)))
            return self.out(h[0])
        if isinstance(b, Encoding):
            e = self.emb(b.ids)
            return self.out(e.sum(1) / b.ids.ne(0).sum(1, keepdim=True))
        if isinstance(b, np.ndarray):
            return self.out(torch.from_numpy(b) @ self.emb.weight[1:] / torch.from_numpy(b).sum(1, keepdim=True))
        e = self.emb(b.x + 1)
        total = torch.zeros(len(b.y), 12).index_add(0, b.batch, e)
        return self.out(total / torch.bincount(b.batch).unsqueeze(1))


torch.manual_seed(0)
for kind in ("packed", "encoding", "arrays", "graph"):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.CyclicLR(opt, 5e-3, 2e-2, step_size_up=10, cycle_momentum=True, base_momentum=0.8, max_momentum=0.9)
    loader = DataLoader(Words(240, kind), batch_size=24, shuffle=True, collate_fn=collate(kind))
    for epoch in range(4):
        hit = 0
        for batch in loader:
            x, y = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, batch.labels if kind == "encoding" else batch.y)
            y = torch.as_tensor(y)
            logits = net(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad(); loss.backward(); opt.step(); sched.step()
            hit += (logits.argmax(1) == y).sum().item()
    print(f"{kind:>9} {loss.item():.3f} {hit / 240:.3f}")
