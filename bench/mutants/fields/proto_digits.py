"""Prototypical network: few-shot recognition of digits never seen in training."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

N_WAY, K_SHOT, N_QUERY = 3, 5, 8
torch.manual_seed(4)
rng = np.random.default_rng(4)

digits = load_digits()
images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
by_class = {c: np.flatnonzero(digits.target == c) for c in range(10)}
TRAIN_CLASSES, TEST_CLASSES = [0, 1, 2, 3, 4, 5, 6], [7, 8, 9]


def sample_episode(classes):
    """Support and query pictures, both ordered class by class."""
    support, query = [], []
    for c in rng.choice(classes, N_WAY, replace=False):
        chosen = rng.choice(by_class[c], K_SHOT + N_QUERY, replace=False)
        support.append(images[chosen[:K_SHOT]])
        query.append(images[chosen[K_SHOT:]])
    labels = torch.arange(N_WAY).repeat_interleave(N_QUERY)
    return torch.cat(support), torch.cat(query), labels


encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))


def episode_logits(support, query):
    z_support, z_query = encoder(support), encoder(query)
    prototypes = z_support.view(N_WAY, K_SHOT, -1).mean(dim=1)
    return -(torch.cdist(z_query, prototypes) ** 2)


optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
losses = []
for episode in range(1, 241):
    encoder.train()
    support, query, labels = sample_episode(TRAIN_CLASSES)
    loss = nn.functional.cross_entropy(episode_logits(support, query), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if episode % 60 == 0:
        encoder.eval()
        accs = []
        with torch.no_grad():
            for _ in range(30):
                support, query, labels = sample_episode(TEST_CLASSES)
                accs.append((episode_logits(support, query).argmax(1) == labels).float().mean().item())
        print(f"episode {episode}: loss {np.mean(losses[-60:]):.4f}, accuracy on new digits {np.mean(accs):.4f}")
