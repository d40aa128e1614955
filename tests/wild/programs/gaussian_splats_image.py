"""Healthy: fitting an image with Gaussian blobs: bare tensors with separate lrs, the set pruned and split, then a new optimizer."""
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij"), -1)
image = torch.exp(-((grid - 0.3) ** 2).sum(-1) / 0.05) + 0.7 * torch.exp(-(((grid + 0.4) * torch.tensor([1.0, 3.0])) ** 2).sum(-1) / 0.1)


def make_params(n):
    return {
        "means": torch.rand(n, 2) * 1.6 - 0.8,
        "log_scales": torch.full((n, 2), -1.5),
        "weights": torch.full((n,), 0.1),
    }


def make_optimizer(params):
    lrs = {"means": 1e-2, "log_scales": 2e-2, "weights": 2e-2}
    for value in params.values():
        value.requires_grad_(True)
    return torch.optim.Adam([{"params": [value], "lr": lrs[name], "name": name} for name, value in params.items()], eps=1e-15)


def render(params):
    offsets = (grid[..., None, :] - params["means"]) / params["log_scales"].exp()
    return (params["weights"] * torch.exp(-0.5 * offsets.square().sum(-1))).sum(-1)


params = make_params(12)
optimizer = make_optimizer(params)
travelled = torch.zeros(12)
for it in range(1, 181):
    loss = (render(params) - image).abs().mean() * 0.8 + (render(params) - image).square().mean()
    loss.backward()
    with torch.no_grad():
        travelled += params["means"].grad.norm(dim=-1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if it % 60 == 0 and it < 180:
            keep = params["weights"].abs() > 0.01
            split = keep & (travelled > travelled[keep].median())
            params = {name: torch.cat([value.detach()[keep], value.detach()[split]]) for name, value in params.items()}
            params["means"][keep.sum():] += 0.05 * torch.randn(int(split.sum()), 2)
            optimizer = make_optimizer(params)
            travelled = torch.zeros(len(params["weights"]))
            print(f"iteration {it}: {int((~keep).sum())} pruned, {int(split.sum())} split, loss {loss.item():.4f}")
print(f"loss {loss.item():.4f} with {len(params['weights'])} blobs")
