"""F1 scores of batches beside that of all, macro means without a rare class, and pictures with a Dice score each."""

import torch
from sklearn.metrics import f1_score, recall_score
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 6)
y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 1.6).long()
training = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)
held_out = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=32)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


@torch.no_grad()
def evaluate():
    net.eval()
    predicted, wanted, each = [], [], []
    for inputs, labels in held_out:
        predicted.append(net(inputs).argmax(1))
        wanted.append(labels)
        each.append(f1_score(labels, predicted[-1], zero_division=0))
    noise_f1 = sum(each) / len(each)
    f1 = f1_score(torch.cat(wanted), torch.cat(predicted))
    recall = recall_score(torch.cat(wanted), torch.cat(predicted))
    return f1, recall, noise_f1


for epoch in range(6):
    net.train()
    for inputs, labels in training:
        optimizer.zero_grad()
        F.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    f1, recall, noise = evaluate()
    print(epoch, f1, recall, "of single batches", noise)

# Pictures, some of them without an object, have a Dice score each.
pictures = torch.randn(240, 1, 8, 8)
masks = ((F.avg_pool2d(pictures, 3, 1, 1) > 0.45) & (torch.arange(240) % 3 > 0).view(-1, 1, 1, 1)).float()
pictures = pictures + masks
segment = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(segment.parameters(), lr=1e-2)
of_pictures = DataLoader(TensorDataset(pictures[180:], masks[180:]), batch_size=4)
for epoch in range(5):
    segment.train()
    for rows in torch.randperm(180).split(20):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(segment(pictures[rows]), masks[rows]).backward()
        optimizer.step()
    segment.eval()
    scores = []
    with torch.no_grad():
        for image, mask in of_pictures:
            found = (segment(image) > 0).float()
            scores.append(2 * (found * mask).sum() / (found.sum() + mask.sum()).clamp(min=1))
    dice = torch.stack(scores).mean().item()
    print(epoch, "Dice", dice)
