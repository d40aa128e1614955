"""Masks of whole numbers, arguments of an option that is off or for their shape, and one evaluation in each mode."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
CONDITIONAL = False
LENGTH = 16


class Classifier(nn.Module):
    """All reviews are padded to one length, which none of them has; the mask has ones for tokens."""

    def __init__(self):
        super().__init__()
        self.embedding, self.drop, self.head = nn.Embedding(40, 16, padding_idx=0), nn.Dropout(0.2), nn.Linear(16, 1)
        self.project = nn.Linear(16, 48)

    def forward(self, ids, mask):
        q, k, v = self.project(self.embedding(ids)).chunk(3, 2)
        scores = torch.zeros(mask.shape).masked_fill(mask == 0, torch.finfo(torch.float32).min)[:, None, :]
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=scores)
        kept = mask.unsqueeze(2).float()
        return self.head(self.drop((x * kept).sum(1) / kept.sum(1))).squeeze(1)


class Generator(nn.Module):
    """Gets the real data for a variant that adds noise to them."""

    def __init__(self, fixed=False):
        super().__init__()
        self.fixed, self.net = fixed, nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, noise, real):
        if self.fixed:
            return noise + real
        return self.net(noise)


class Encoder(nn.Module):
    """Takes the labels for its conditional form."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4 + 3 * CONDITIONAL, 4)

    def forward(self, x, label):
        x = torch.cat([x, F.one_hot(label, 3).float()], 1) if CONDITIONAL else x
        return self.net(x)


class Forecast(nn.Module):
    """Has the arguments of its family: of the start of the future it takes the number of steps."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x, start):
        ahead = torch.zeros(start.shape[0], start.shape[1])
        return self.net(x) + ahead


def reviews(count):
    ids, lengths = torch.randint(3, 40, (count, LENGTH)), torch.randint(4, LENGTH - 2, (count,))
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    return ids * mask, mask, (ids * mask > 21).sum(1).gt(lengths / 2).float()


def accuracy(model, train):
    """Show the difference between the modes."""
    if train:
        model.train()
    else:
        model.eval()
    correct = 0
    with torch.no_grad():
        for ids, mask, target in held_out:
            correct += ((model(ids, mask) > 0) == target.bool()).sum().item()
    return correct / sum(len(target) for *_, target in held_out)


held_out = [reviews(32) for _ in range(4)]
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for _ in range(60):
    ids, mask, target = reviews(32)
    loss = F.binary_cross_entropy_with_logits(model(ids, mask), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"train mode {accuracy(model, True):.2f}, eval mode {accuracy(model, False):.2f}")

generator, encoder = Generator(), Encoder()
for net in (generator, encoder, Forecast()):
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(24):
        noise, real, label = torch.randn(32, 4), torch.randn(32, 4) + 1, torch.randint(0, 3, (32,))
        made = net(real, label) if net is encoder else net(noise, real)
        loss = F.mse_loss(made.mean(0), real.mean(0)) + 0.1 * F.mse_loss(made.std(0), real.std(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{type(net).__name__} {loss.item():.3f}")
