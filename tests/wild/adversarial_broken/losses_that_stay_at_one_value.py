"""A reference that is the policy itself, and a student that is its own teacher; in functions, without a DataLoader."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
prompts = torch.randn(128, 6)


def prefer(policy, anchor, steps=70):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(steps):
        rows = prompts[torch.randint(0, 128, (32,))]
        with torch.no_grad():
            before = anchor(rows).log_softmax(1)
        after = policy(rows).log_softmax(1)
        margin = (after - before)[:, 0] - (after - before)[:, 1]
        optimizer.zero_grad()
        (-F.logsigmoid(0.1 * margin).mean()).backward()  # error: loss-never-changes
        optimizer.step()


def distil(student, teacher, steps=70):
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(steps):
        rows = prompts[torch.randint(0, 128, (32,))]
        ratio = (student(rows) - teacher(rows).detach()).exp()
        optimizer.zero_grad()
        ratio.mean().backward()  # error: loss-never-changes
        optimizer.step()


def network():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


model = network()
prefer(model, model)
pupil = network()
distil(pupil, pupil)
