"""Healthy: BYOL: target network by EMA through `.data`, predictor on the online side, two losses over swapped views."""
import copy

import torch
from torch import nn
import torch.nn.functional as F


def MLP(dim, projection_size, hidden_size=64):
    return nn.Sequential(
        nn.Linear(dim, hidden_size),
        nn.BatchNorm1d(hidden_size),
        nn.ReLU(inplace=True),
        nn.Linear(hidden_size, projection_size),
    )


def loss_fn(x, y):
    x = F.normalize(x, dim=-1, p=2)
    y = F.normalize(y, dim=-1, p=2)
    return 2 - 2 * (x * y).sum(dim=-1)


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_average(self, old, new):
        return old * self.beta + (1 - self.beta) * new


class BYOL(nn.Module):
    def __init__(self, net, projection_size=24, moving_average_decay=0.97):
        super().__init__()
        self.online_encoder = net
        self.online_predictor = MLP(projection_size, projection_size)
        self.target_encoder = copy.deepcopy(net)
        for p in self.target_encoder.parameters():
            p.requires_grad = False
        self.target_ema_updater = EMA(moving_average_decay)

    def update_moving_average(self):
        for current_params, ma_params in zip(self.online_encoder.parameters(), self.target_encoder.parameters()):
            ma_params.data = self.target_ema_updater.update_average(ma_params.data, current_params.data)

    def forward(self, one, two):
        online_pred_one = self.online_predictor(self.online_encoder(one))
        online_pred_two = self.online_predictor(self.online_encoder(two))
        with torch.no_grad():
            target_proj_one = self.target_encoder(one)
            target_proj_two = self.target_encoder(two)
        loss_one = loss_fn(online_pred_one, target_proj_two.detach())
        loss_two = loss_fn(online_pred_two, target_proj_one.detach())
        return (loss_one + loss_two).mean()


torch.manual_seed(21)
torch.set_num_threads(1)
groups = 1.5 * torch.randn(8, 20)


def sample_unlabelled_images(n=64):
    y = torch.randint(0, 8, (n,))
    return groups[y] + torch.randn(n, 20), y


def augment(x):
    return x * (torch.rand_like(x) > 0.2) + 0.1 * torch.randn_like(x)


learner = BYOL(MLP(20, 24))
opt = torch.optim.Adam([p for p in learner.parameters() if p.requires_grad], lr=2e-3)

for i in range(100):
    images, _ = sample_unlabelled_images()
    loss = learner(augment(images), augment(images))
    opt.zero_grad()
    loss.backward()
    opt.step()
    learner.update_moving_average()
    if i % 25 == 0:
        print(i, round(loss.item(), 4))

learner.eval()
with torch.no_grad():
    (bank, bank_y), (query, query_y) = sample_unlabelled_images(400), sample_unlabelled_images(200)
    sims = F.normalize(learner.online_encoder(query)) @ F.normalize(learner.online_encoder(bank)).T
    knn = bank_y[sims.topk(9).indices].mode(1).values
print("kNN accuracy", (knn == query_y).float().mean().item())
