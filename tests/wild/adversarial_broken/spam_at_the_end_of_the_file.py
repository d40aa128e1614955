"""A binary classifier without loaders: the rows kept for the evaluation are the end of a sorted file."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
features = np.concatenate([rng.normal(-0.3, 1, (500, 12)), rng.normal(0.3, 1, (500, 12))]).astype("float32")
spam = np.concatenate([np.zeros(500), np.ones(500)]).astype("float32")
rows, answers = torch.from_numpy(features[:800]), torch.from_numpy(spam[:800])
kept, truth = torch.from_numpy(features[800:]), torch.from_numpy(spam[800:])  # error: evaluation-on-other-classes
model = nn.Linear(12, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(8):
    for index in torch.randperm(len(rows)).split(40):
        loss = nn.functional.binary_cross_entropy_with_logits(model(rows[index])[:, 0], answers[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        guesses = (torch.sigmoid(model(kept))[:, 0] > 0.5).float()
        print(epoch, (guesses == truth).float().mean().item())
