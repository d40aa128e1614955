"""Healthy: gradual unfreezing (ULMFiT): layers join the optimizer one phase at a time through add_param_group."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
torch.set_num_threads(1)


def freeze(module, frozen=True):
    for p in module.parameters():
        p.requires_grad_(not frozen)


class TextNet(nn.Module):
    def __init__(self, vocab=60, dim=24, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.encoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens).mean(1)))


def corpus(n):
    y = torch.randint(0, 3, (n,))
    topic = torch.randint(0, 20, (n, 12)) + 20 * y[:, None]
    noise = torch.randint(0, 60, (n, 12))
    return TensorDataset(torch.where(torch.rand(n, 12) < 0.35, topic, noise), y)


train_dl = DataLoader(corpus(480), batch_size=32, shuffle=True)
val_dl = DataLoader(corpus(240), batch_size=80)
net = TextNet()
crit = nn.CrossEntropyLoss()

freeze(net.embedding)
freeze(net.encoder)
optimizer = torch.optim.Adam(net.head.parameters(), lr=1e-2)


def run_phase(name, epochs):
    for _ in range(epochs):
        net.train()
        for tokens, y in train_dl:
            optimizer.zero_grad(set_to_none=True)
            loss = crit(net(tokens), y)
            loss.backward()
            optimizer.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for tokens, y in val_dl:
            hits += (net(tokens).argmax(-1) == y).sum().item()
    print(f"{name:>10}: {len(optimizer.param_groups)} groups, val acc {hits / 240:.3f}")


run_phase("head", 2)

freeze(net.encoder, False)
optimizer.add_param_group({"params": net.encoder.parameters(), "lr": 5e-3})
run_phase("+encoder", 2)

freeze(net.embedding, False)
optimizer.add_param_group({"params": net.embedding.parameters(), "lr": 2e-3})
run_phase("+embedding", 3)
