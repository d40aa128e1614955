"""Targets that are made from a batch: of a teacher, of a memory, of the inputs, of permutations, of a domain, in other numbers."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 8)
y = (x @ torch.randn(8, 2)).argmax(1)
value = x @ torch.randn(8) + 0.1 * torch.randn(320)
loader = DataLoader(TensorDataset(x, value, y), batch_size=32, shuffle=True)


def network(outputs, inputs=8):
    return nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, outputs))


model, domain, ahead, auto = network(2), network(2), network(1), network(8)
order, critic = network(4, 8), network(2)
optimizer = torch.optim.Adam(nn.ModuleList([model, domain, ahead, auto, order, critic]).parameters(), lr=1e-3)


def pseudo_labels(x, v, y):
    with torch.no_grad():
        guess = model(x).argmax(1)
    return F.cross_entropy(model(x + 0.2 * torch.randn_like(x)), guess) + F.cross_entropy(model(x), y)


def distilled(x, v, y):
    with torch.no_grad():
        soft = (model(x) / 2).softmax(1)
    return F.cross_entropy(model(x + 0.3 * torch.randn_like(x)) / 2, soft) + 0.5 * F.cross_entropy(model(x), y)


def halves_of_domains(x, v, y):
    where = torch.arange(2).repeat_interleave(len(x) // 2)
    return F.cross_entropy(domain(x), where) + F.cross_entropy(model(x), 1 - y)


def binary_labels_of_other_things(x, v, y):
    return F.cross_entropy(domain(x), (x[:, 0] > 0).long()) + F.cross_entropy(model(x), torch.randint(0, 2, y.shape))


def scaled_values(x, v, y):
    return F.mse_loss(ahead(x)[:, 0], (v - value.mean()) / value.std()) + F.l1_loss(ahead(x), v[:, None].double().float())


def denoised(x, v, y):
    return F.mse_loss(auto(x + 0.5 * torch.randn_like(x)), x) + F.mse_loss(auto(x.flip(1)), x.roll(1, 1))


def permutation_of_parts(x, v, y):
    parts = torch.randint(0, 4, (len(x),))
    turned = torch.stack([row.roll(2 * int(part)) for row, part in zip(x, parts)])
    return F.cross_entropy(order(turned), parts)


def returns_of_a_memory(x, v, y):
    with torch.no_grad():
        wanted = v + 0.9 * critic(x.roll(1, 0)).max(1).values
    return F.smooth_l1_loss(critic(x).gather(1, y[:, None])[:, 0], wanted)


makers = pseudo_labels, distilled, halves_of_domains, binary_labels_of_other_things, scaled_values, denoised, permutation_of_parts
for make in (*makers, returns_of_a_memory):
    for epoch in range(3):
        for batch in loader:
            loss = make(*batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
