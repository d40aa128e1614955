"""Metrics that look like mistakes: top-k, one-vs-all, pairs, a noisy copy of one batch, a loss of the last step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 8)
y = x[:, :4].argmax(1)
train, test = DataLoader(TensorDataset(x[:480], y[:480]), 48, shuffle=True), DataLoader(TensorDataset(x[480:], y[480:]), 40)
net, cell = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), nn.GRUCell(8, 8)
head = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*net.parameters(), *cell.parameters(), *head.parameters()], lr=1e-2)


def accuracy(output, target, topk=(1, 2)):
    _, found = output.topk(max(topk), 1, True, True)
    found = found.t()
    correct = found.eq(target.view(1, -1).expand_as(found))
    return [correct[:k].reshape(-1).float().sum(0) / len(target) for k in topk]


def measure():
    net.eval()
    last, total, hits, each = 0.0, 0, 0, torch.zeros(4)
    with torch.no_grad():
        for rows, labels in test:
            scores = net(rows)
            hits += (scores.argmax(1, keepdim=True) == labels[:, None]).sum().item()
            each += (scores.argmax(1)[:, None] == torch.arange(4)).sum(0)
            confident = (scores.softmax(1).max(1).values > 0.5).float().mean()
            margin = (scores.max(1)[0] - scores.mean(1)).mean()
            total += len(labels)
            last = accuracy(scores, labels)[1].item()
        noisy = [(net(x[480:520] + 0.1 * torch.randn(40, 8)).argmax(1) == y[480:520]).float().mean() for _ in range(3)]
        lagged = (net(x[480:520]).argmax(1) == y[481:521]).float().mean()
        same = (net(x[480:]).argmax(1)[:, None] == net(x[480:]).argmax(1)[None]).float().mean()
    print(f"{hits / total:.3f} {last:.3f} {confident:.2f} {margin:.2f} {sum(noisy) / 3:.2f} {lagged:.2f} {same:.2f}")
    net.train()


for _ in range(3):
    loss = 0.0
    for rows, labels in train:
        state = torch.zeros(len(rows), 8)
        for _ in range(3):
            state = cell(rows, state)
        loss = nn.functional.cross_entropy(net(rows), labels)
        loss = loss + nn.functional.mse_loss(head(state).squeeze(1), rows[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss of the last batch {loss.item():.3f}")
    measure()
