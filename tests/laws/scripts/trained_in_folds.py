"""Folds and tasks with mistakes in losses: choices, cut graphs, scores in a dice loss, copies that stay, lost results."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


def share_of(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    chosen = out.argmax(1)
    return 1 - (chosen == target).float().mean()


def dice(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return 1 - (2 * (out * target).sum() + 1) / (out.sum() + target.sum() + 1)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 6, padding_idx=0)
        self.first, self.drop, self.head = nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 3)
        self.other = nn.Linear(6, 8)
        self.other.load_state_dict(self.first.state_dict())

    def forward(self, words: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
        read = self.words(words)
        read.masked_fill(pad.unsqueeze(2), 0.0)
        mean = read.sum(1) / (~pad).sum(1, keepdim=True)
        with torch.no_grad():
            hidden = torch.relu(self.first(mean) + self.other(mean))
        out = self.head(self.drop(hidden))
        F.relu(out)
        return out


def held_out(fold: int) -> torch.Tensor:
    return torch.arange(48) % 3 == fold


torch.manual_seed(9)
words, kinds = torch.randint(1, 20, (48, 7)), torch.randint(0, 3, (48,))
words[:, 5:] = 0
pad, said = words == 0, list[object]()
model = Model()
target, average = copy.deepcopy(model), copy.deepcopy(model)
anchors = {name: weight.detach().clone() for name, weight in model.named_parameters()}
for fold in range(3):
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(adam, 4)
    train, test = ~held_out(fold), held_out(fold)
    for step in range(6):
        rows = train.nonzero().flatten()[step % 2 :: 2]
        out = model(words[rows], pad[rows])
        one_hot = F.one_hot(kinds[rows], 3).float()
        drift = sum(((weight - anchors[name]) ** 2).sum() for name, weight in model.named_parameters())
        loss = F.cross_entropy(out, kinds[rows]) + 0.1 * share_of(out, kinds[rows]) + 0.01 * drift
        loss = loss + 0.1 * dice(out, one_hot) + 0.001 * out.detach().square().mean()
        with torch.no_grad():
            soft = target(words[rows], pad[rows]).softmax(1)
        loss = loss + 0.1 * F.kl_div(out.log_softmax(1), soft, reduction="batchmean")
        adam.zero_grad()
        loss.backward(retain_graph=step == 0)
        if all(weight.grad is not None for weight in model.head.parameters()):
            nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        adam.step()
        with torch.no_grad():
            for kept, weight in zip(average.parameters(), model.parameters(), strict=True):
                kept.mul_(0.9).add_(weight, alpha=0.1)
        said.append(loss.detach())
    schedule.step()
    model.eval()
    with torch.no_grad():
        guess = model(words[test], pad[test]).argmax(1)
        right = (guess == kinds[test]).float().mean().item()
        said += [right, average(words[test], pad[test]).sum()]
    model.train()
results = [*said, *(weight.detach() for weight in model.parameters())]
print(*(float(torch.as_tensor(one).sum()) for one in results))
