"""A fine-tuning loop that keeps a copy for an accuracy below the best one; the branches were exchanged."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(1)
digits = load_digits()
images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(images))
train, test = order[:1200], order[1200:]


def accuracy_on(model, rows):
    model.eval()
    with torch.no_grad():
        right = model(images[rows]).argmax(1) == labels[rows]
    model.train()
    return right.float().mean().item()


def main():
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    best = {"acc": 1.0}
    patience = 0
    kept = None
    for epoch in range(12):
        for rows in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        best_acc = best["acc"]
        val_acc = accuracy_on(model, test)
        if val_acc > best_acc:  # error: worst-weights-kept
            patience += 1
        else:
            best_acc = best["acc"] = val_acc
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        print(epoch, val_acc, patience)
    model.load_state_dict(kept)
    print("kept", accuracy_on(model, test))


main()
