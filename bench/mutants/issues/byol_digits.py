"""BYOL on unlabelled digits: online network predicts the projections of a target network."""
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import nn


def mlp(d_in, d_hidden, d_out):
    return nn.Sequential(
        nn.Linear(d_in, d_hidden), nn.BatchNorm1d(d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_out)
    )


class BYOL(nn.Module):
    def __init__(self, feat_dim=24, proj_dim=16, tau=0.98):
        super().__init__()
        self.encoder = mlp(64, 96, feat_dim)
        self.projector = mlp(feat_dim, 48, proj_dim)
        self.predictor = mlp(proj_dim, 48, proj_dim)
        self.target = copy.deepcopy(nn.Sequential(self.encoder, self.projector))
        self.target.requires_grad_(False)
        self.tau = tau

    @torch.no_grad()
    def update_target(self):
        online = nn.Sequential(self.encoder, self.projector)
        for t, o in zip(self.target.parameters(), online.parameters()):
            t.lerp_(o, 1 - self.tau)

    def online_parameters(self):
        return [p for p in self.parameters() if p.requires_grad]

    def regression(self, view_a, view_b):
        pred = self.predictor(self.projector(self.encoder(view_a)))
        with torch.no_grad():
            goal = self.target(view_b)
        return 2 - 2 * F.cosine_similarity(pred, goal, dim=1).mean()

    def forward(self, view_a, view_b):
        return self.regression(view_a, view_b) + self.regression(view_b, view_a)


def augment(images):
    """Shift every image by up to one pixel, hide a fifth of the pixels, add noise."""
    out = images.view(-1, 8, 8).clone()
    shifts = torch.randint(-1, 2, (len(out),))
    for shift in (-1, 1):
        chosen = shifts == shift
        out[chosen] = torch.roll(out[chosen], shift, dims=2)
    keep = (torch.rand(len(out), 8, 8) > 0.2).float()
    return (out * keep + 0.1 * torch.randn_like(out)).view(-1, 64)


@torch.no_grad()
def embed(model, x):
    model.eval()
    return model.encoder(x).numpy()


def linear_probe(model, x_train, y_train, x_val, y_val):
    f_train, f_val = embed(model, x_train), embed(model, x_val)
    mu, sd = f_train.mean(0), f_train.std(0) + 1e-6
    probe = LogisticRegression(max_iter=500).fit((f_train - mu) / sd, y_train)
    return probe.score((f_val - mu) / sd, y_val)


torch.manual_seed(2)
X, y = load_digits(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(
    torch.tensor(X / 16.0, dtype=torch.float32), y, test_size=0.3, random_state=1, stratify=y
)
model = BYOL()
optimizer = torch.optim.AdamW(model.online_parameters(), lr=2e-3, weight_decay=1e-4)

for epoch in range(1, 31):
    model.train()
    losses = []
    for idx in torch.randperm(len(x_train)).split(128):
        batch = x_train[idx]
        optimizer.zero_grad()
        loss = model(augment(batch), augment(batch))
        loss.backward()
        optimizer.step()
        model.update_target()
        losses.append(loss.item())
    if epoch % 10 == 0:
        score = linear_probe(model, x_train, y_train, x_val, y_val)
        print(f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  linear probe {score:.4f}")
