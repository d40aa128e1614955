"""FedProx rounds in functions: fresh local model and optimizer per client, a proximal term, weights averaged into the server."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler


def build():
    return nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))


def partition(x, y, clients):
    """Unequal shares: each client sees mostly one class."""
    order = torch.argsort(y + 0.8 * torch.rand(len(y)))
    return [(x[i], y[i]) for i in order.chunk(clients)]


def train_client(state, x, y, mu=0.05, epochs=2, batch=16):
    model = build()
    model.load_state_dict(state)
    anchor = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(model(x[index]), y[index])
            proximal = sum((p - a).pow(2).sum() for p, a in zip(model.parameters(), anchor))
            optimizer.zero_grad()
            (loss + 0.5 * mu * proximal).backward()
            optimizer.step()
    return model.state_dict(), len(x)


def average(results):
    total = sum(n for _, n in results)
    return {k: sum(state[k] * (n / total) for state, n in results) for k in results[0][0]}


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    data = load_wine()
    x = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
    y = torch.tensor(data.target)
    shuffled = torch.randperm(len(x))
    test, train = shuffled[:50], shuffled[50:]
    clients = partition(x[train], y[train], 5)
    server = build()
    print(f"before: {accuracy(server, x[test], y[test]):.3f}")
    for rnd in range(8):
        chosen = torch.randperm(5)[:3].tolist()
        results = [train_client(server.state_dict(), *clients[c]) for c in chosen]
        server.load_state_dict(average(results))
        print(f"round {rnd} test accuracy {accuracy(server, x[test], y[test]):.3f}")


main()
