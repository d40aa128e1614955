import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
digits = load_digits()
X, Y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
order = torch.randperm(len(X))
train, test = order[:1500], order[1500:]

# non-iid clients: rows sorted by label, cut in shards, two shards a client
by_label = train[Y[train].argsort(stable=True)]
shards = by_label.chunk(20)
deal = torch.randperm(20).tolist()
clients = [torch.cat([shards[deal[2 * i]], shards[deal[2 * i + 1]]]) for i in range(10)]


def model(w, x):
    return F.relu(x @ w['fc1.weight'] + w['fc1.bias']) @ w['fc2.weight'] + w['fc2.bias']


def local_training(global_weights, rows, epochs=1, lr=0.1):
    w = {k: v.clone().requires_grad_(True) for k, v in global_weights.items()}
    for _ in range(epochs):
        for idx in rows[torch.randperm(len(rows))].split(25):
            loss = F.cross_entropy(model(w, X[idx]), Y[idx])
            grads = torch.autograd.grad(loss, tuple(w.values()))
            with torch.no_grad():
                for p, g in zip(w.values(), grads):
                    p -= lr * g
    return {k: v.detach() for k, v in w.items()}


def average(states, sizes):
    total = sum(sizes)
    return {k: sum(s[k] * (n / total) for s, n in zip(states, sizes)) for k in states[0]}


weights = {'fc1.weight': torch.randn(64, 64) * 0.17, 'fc1.bias': torch.zeros(64),
           'fc2.weight': torch.randn(64, 10) * 0.12, 'fc2.bias': torch.zeros(10)}
for rnd in range(30):
    chosen = torch.randperm(10)[:5].tolist()
    states = [local_training(weights, clients[c]) for c in chosen]
    weights = average(states, [len(clients[c]) for c in chosen])
    if rnd % 10 == 9:
        acc = (model(weights, X[test]).argmax(1) == Y[test]).float().mean().item()
        print(f'round {rnd + 1} global test accuracy {acc:.3f}')
