"""Inputs that are equal for good reasons: of twin critics, a teacher, a first reset, an autoencoder, one draw repeated."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
states, actions = torch.randn(200, 5), torch.randn(200, 2)
first, second = nn.Linear(7, 1), nn.Linear(7, 1)
student, decoder = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 5)), nn.Linear(5, 5)
teacher = copy.deepcopy(student)
parameters = [*first.parameters(), *second.parameters(), *student.parameters(), *decoder.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
position = torch.zeros(16, 5) + torch.arange(5)
for step in range(24):
    rows = torch.randint(0, 200, (16,))
    one, two = torch.cat([states[rows], actions[rows]], 1), torch.cat([states[rows], actions[rows]], 1).roll(1, 0)
    loss = (first(one) - 1).square().mean() + (second(one.clone()) - 1).square().mean() + first(two).square().mean()
    inputs = states[rows]
    with torch.no_grad():
        aims = teacher(inputs)
    loss = loss + (student(inputs) - aims).square().mean()
    twice = torch.cat([inputs, inputs])
    loss = loss + student(twice).square().mean() + (decoder(inputs) - inputs).square().mean()
    loss = loss + decoder(position).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for new, old in zip(student.parameters(), teacher.parameters(), strict=True):
        old.data.lerp_(new.data, 0.01)
    position = position + 0.1 * torch.randn(16, 5)
