"""Healthy: NeRF on a synthetic scene: positional encoding, rays in chunks, alpha compositing, coarse and fine losses, lr decayed per step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9458)
torch.set_num_threads(1)


def positional_encoding(tensor, num_encoding_functions=4):
    encoding = [tensor]
    for i in range(num_encoding_functions):
        for func in (torch.sin, torch.cos):
            encoding.append(func(2.0**i * tensor))
    return torch.cat(encoding, dim=-1)


class VeryTinyNerfModel(nn.Module):
    def __init__(self, filter_size=48):
        super().__init__()
        self.layer1 = nn.Linear(3 + 3 * 2 * 4, filter_size)
        self.layer2 = nn.Linear(filter_size, filter_size)
        self.layer3 = nn.Linear(filter_size, 4)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


def cumprod_exclusive(tensor):
    cumprod = torch.roll(torch.cumprod(tensor, -1), 1, -1)
    cumprod[..., 0] = 1.0
    return cumprod


def render(sigma_a, rgb, depth_values):
    gaps = torch.cat((depth_values[..., 1:] - depth_values[..., :-1], torch.full_like(depth_values[..., :1], 1e2)), -1)
    alpha = 1.0 - torch.exp(-sigma_a * gaps)
    weights = alpha * cumprod_exclusive(1.0 - alpha + 1e-10)
    return (weights[..., None] * rgb).sum(dim=-2)


def truth(points):
    """A coloured ball."""
    sigma = 20.0 * torch.sigmoid(20 * (0.6 - points.norm(dim=-1)))
    return sigma, 0.5 + 0.5 * torch.sin(3 * points)


def rays(n):
    origin = F.normalize(torch.randn(n, 3), dim=-1) * 2
    target = 0.5 * torch.randn(n, 3)
    return origin, F.normalize(target - origin, dim=-1)


def sample(n_rays, n_points):
    origin, direction = rays(n_rays)
    depth = torch.linspace(1.0, 3.0, n_points).expand(n_rays, n_points)
    depth = depth + torch.rand(n_rays, n_points) * 2.0 / n_points
    return origin[:, None] + direction[:, None] * depth[..., None], depth


def query(model, points, chunksize=2048):
    flat = positional_encoding(points).reshape(-1, 27)
    out = torch.cat([model(flat[i:i + chunksize]) for i in range(0, len(flat), chunksize)]).reshape(*points.shape[:-1], 4)
    return F.relu(out[..., 3]), torch.sigmoid(out[..., :3])


coarse, fine = VeryTinyNerfModel(), VeryTinyNerfModel()
nn.init.constant_(coarse.layer3.bias, 0.1)
nn.init.constant_(fine.layer3.bias, 0.1)
optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], lr=5e-3)
psnrs = []
for i in range(120):
    loss = 0
    for model, n_points in ((coarse, 12), (fine, 24)):
        points, depth = sample(64, n_points)
        sigma, rgb = truth(points)
        loss = loss + F.mse_loss(render(*query(model, points), depth), render(sigma, rgb, depth))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    for param_group in optimizer.param_groups:
        param_group["lr"] = 5e-3 * 0.1 ** (i / 250)
    psnrs.append(-10.0 * torch.log10(loss.detach() / 2).item())
print(f"PSNR {sum(psnrs[:10]) / 10:.2f} -> {sum(psnrs[-10:]) / 10:.2f}")
