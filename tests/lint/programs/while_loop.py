"""A `while` loop with early stopping, which keeps the best weights."""

import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 32), nn.ELU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
best, best_state, bad, epoch = float("inf"), None, 0, 0

while bad < 10 and epoch < 500:
    model.train()
    for x, y in train_batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()  # broken[eval-mode-missing]: pass
    with torch.no_grad():
        score = sum(nn.functional.mse_loss(model(x), y).item() * len(x) for x, y in val_batches) / val_size
    plateau.step(score)
    if score < best:
        best, best_state, bad = score, copy.deepcopy(model.state_dict()), 0
    else:
        bad += 1
    epoch += 1

model.load_state_dict(best_state)
