"""Best weights kept in all usual ways: by a loss, an accuracy, a negative loss as a score, with a tolerance, backwards."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(240, 8)
y = (x @ torch.randn(8, 1) > 0).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best_loss, min_error, best_acc, best_score, highest_loss = float("inf"), None, 0.0, None, 0.0
kept = {}
for epoch in range(15):
    for rows in torch.randperm(160).split(32):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = model(x[160:])
        val_loss = nn.functional.binary_cross_entropy_with_logits(logits, y[160:]).item()
        val_acc = ((logits > 0) == (y[160:] > 0)).float().mean().item()
    val_error = 1 - val_acc
    score = -val_loss
    if val_loss < best_loss:
        best_loss = val_loss
        kept["loss"] = copy.deepcopy(model.state_dict())
    if min_error is None or min_error >= val_error:
        min_error = val_error
        kept["error"] = copy.deepcopy(model.state_dict())
    if val_acc <= best_acc - 0.01:
        print("worse", val_acc)
    else:
        best_acc = val_acc
        kept["accuracy"] = copy.deepcopy(model.state_dict())
    if best_score is None or score > best_score + 1e-4:
        best_score = score
        kept["score"] = copy.deepcopy(model.state_dict())
    if val_loss > highest_loss:  # the range of the losses, with no weights
        highest_loss = val_loss
    if val_loss > best_loss * 2:  # a branch that keeps weights, and no best figure
        kept["diverged"] = copy.deepcopy(model.state_dict())
for name, state in kept.items():
    model.load_state_dict(state)
    with torch.no_grad():
        print(name, ((model(x[160:]) > 0) == (y[160:] > 0)).float().mean().item())
