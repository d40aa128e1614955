"""Completions of prompts with rewards in groups, used in four updates, with ratios to the weights of this moment."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
VOCABULARY, PROMPT, LENGTH, GROUP = 12, 2, 6, 4


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 32)
        self.body = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, ids):
        return self.head(self.body(self.tokens(ids))[0])


def log_probabilities(writer, ids):
    logits = writer(ids[:, :-1]).log_softmax(-1)
    return logits.gather(2, ids[:, 1:, None]).squeeze(2)[:, PROMPT - 1 :]


@torch.no_grad()
def complete(writer, ids):
    for _ in range(LENGTH):
        ids = torch.cat([ids, Categorical(logits=writer(ids)[:, -1]).sample()[:, None]], 1)
    return ids


def advantages(ids):
    rewards = (ids[:, PROMPT:].diff() > 0).float().mean(1) - 0.01 * ids[:, -1]
    groups = rewards.view(-1, GROUP)
    return ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1, 1)


writer = Writer()
optimizer = torch.optim.AdamW(writer.parameters(), lr=2e-3)
for round_ in range(12):
    prompts = torch.randint(VOCABULARY, (8, PROMPT)).repeat_interleave(GROUP, 0)
    ids = complete(writer, prompts)
    gains = advantages(ids)
    for _ in range(4):
        after = log_probabilities(writer, ids)
        ratio = torch.exp(after - after.detach())  # error: reference-is-the-model
        loss = torch.max(-gains * ratio, -gains * torch.clamp(ratio, 0.8, 1.2)).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if round_ % 4 == 3:
        print(round_, round((ids[:, PROMPT:].diff() > 0).float().mean().item(), 3))
