"""A bigram model learns to prefer even tokens, and is to keep the language that it learned before."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
torch.set_num_threads(1)
TOKENS = 12


def sentences(n: int) -> torch.Tensor:
    return (torch.randint(0, TOKENS, (n, 1)) + torch.randint(1, 4, (n, 10)).cumsum(1)) % TOKENS


def likelihood(model: nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens[:, :-1]).log_softmax(-1).gather(2, tokens[:, 1:, None]).sum((1, 2))


policy = nn.Embedding(TOKENS, TOKENS)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.1)
for loss in (-likelihood(policy, sentences(48)).mean() for _ in range(100)):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
reference = policy
reference.load_state_dict(policy.state_dict())
for _ in range(150):
    a, b = sentences(32), sentences(32)
    better = ((a % 2 == 0).sum(1) >= (b % 2 == 0).sum(1))[:, None]
    chosen, rejected = torch.where(better, a, b), torch.where(better, b, a)
    before = (likelihood(reference, chosen) - likelihood(reference, rejected)).detach()
    loss = -F.logsigmoid(0.5 * (likelihood(policy, chosen) - likelihood(policy, rejected) - before)).mean()
    optimizer.zero_grad()
    loss.backward()  # error: loss-never-changes
    optimizer.step()
print(f"result: {-likelihood(policy, sentences(500)).mean().item() / 9:.4f}")
