"""Healthy: `.item()` decides control flow (skip an outlier batch, hard-example threshold, curriculum); the loss stays a tensor."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)


def sample_batch(difficulty, corrupted=False):
    x = torch.randn(64, 4) * difficulty
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    if corrupted:
        y = y + 50.0
    return x, y


difficulty, level_loss, skipped = 0.5, None, 0
for it in range(150):
    x, y = sample_batch(difficulty, corrupted=it % 40 == 39)
    per_sample = F.smooth_l1_loss(model(x), y, reduction="none").squeeze(1)
    mean_loss = per_sample.mean().item()

    if level_loss is not None and mean_loss > 20 * level_loss:
        skipped += 1  # broken batch: no update
        continue

    # online hard example mining: the harder half only
    threshold = per_sample.detach().median().item()
    loss = per_sample[per_sample >= threshold].mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    level_loss = mean_loss if level_loss is None else 0.9 * level_loss + 0.1 * mean_loss
    if level_loss < 0.02 and difficulty < 1.5:
        difficulty = min(1.5, difficulty + 0.25)
        level_loss = None

with torch.no_grad():
    x, y = sample_batch(1.0)
    print(f"difficulty {difficulty}, skipped {skipped}, test mae {(model(x) - y).abs().mean().item():.4f}")
