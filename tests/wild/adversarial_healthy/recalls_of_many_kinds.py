"""Recall, precision, F1 and IoU of many kinds: macro, micro, weighted, of one class, smoothed, at k, at other thresholds."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x = torch.randn(900, 10)
y = (x[:, :4] + torch.tensor([0.8, 0.2, 0.0, -0.6]) + 0.9 * torch.randn(900, 4)).argmax(1)
train = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=50, shuffle=True)
valid = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=80)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
precision = 32
history = {"macro_f1": [], "recall": []}


def evaluate():
    model.eval()
    table = torch.zeros(4, 4, dtype=torch.long)  # rows are predictions here, and columns targets
    probabilities, at_two = [], 0
    with torch.no_grad():
        for inputs, labels in valid:
            scores = model(inputs)
            for p, t in zip(scores.argmax(1).tolist(), labels.tolist()):
                table[p, t] += 1
            at_two += (scores.topk(2, dim=1).indices == labels[:, None]).any(1).sum().item()
            probabilities.append(scores.softmax(1))
    model.train()
    return table.numpy(), torch.cat(probabilities), at_two / len(valid.dataset)


for epoch in range(5):
    for inputs, labels in train:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    table, probabilities, recall_at_2 = evaluate()
    hits, guessed, asked = np.diag(table), table.sum(1), table.sum(0)
    recalls, precisions = hits / asked, hits / (guessed + 1e-7)
    macro_recall, micro_precision = recalls.mean(), hits.sum() / table.sum()
    weighted_recall = (recalls * asked).sum() / asked.sum()
    f1s = 2 * hits / (guessed + asked)
    f1_of_means = 2 * macro_recall * precisions.mean() / (macro_recall + precisions.mean())
    foreground_f1, miou = f1s[1:].mean(), (hits / (guessed + asked - hits)).mean()
    rare = 3
    rare_recall, rare_precision = 100 * recalls[rare], 100 * precisions[rare]
    # Another threshold than the middle, for the rare class against the others.
    chosen, wanted = probabilities[:, rare] > 0.2, y[600:] == rare
    sensitivity = (chosen & wanted).sum().item() / wanted.sum().item()
    ppv = (chosen & wanted).sum().item() / max(1, chosen.sum().item())
    specificity = (~chosen & ~wanted).sum().item() / (~wanted).sum().item()
    order = probabilities[:, rare].argsort(descending=True)
    found = wanted[order].double()
    average_precision = (found.cumsum(0) / torch.arange(1, 301) * found).sum().item() / found.sum().item()
    history["macro_f1"].append(round(float(f1s.mean()), 4))
    history["recall"].append(float(macro_recall))
    print(f"{epoch}: recall {macro_recall:.3f} / {recall_at_2:.3f} precision {precisions.mean():.3f} f1 {f1s.mean():.3f}")
    print(f"   rare {rare_recall:.1f} {rare_precision:.1f}, {sensitivity:.3f} {ppv:.3f} {specificity:.3f} {precision}")
print(f"ap {average_precision:.3f} f1 {f1_of_means:.3f} {foreground_f1:.3f} iou {miou:.3f} {micro_precision:.3f} {weighted_recall:.3f}")
