"""A list of blocks with the momentum of another framework: evaluations use the statistics of the last batch."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
WIDTHS = (8, 16, 16)


def stack(widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        layers.append(torch.nn.BatchNorm1d(after, momentum=0.99, eps=1e-3))  # error: layer-setting-out-of-range
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 2))


def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.eval()


points = torch.randn(600, 8)
labels = (points[:, 0] > 0).long()
fitted = fit(stack(WIDTHS), zip(points.split(20), labels.split(20)))
with torch.no_grad():
    print((fitted(points).argmax(1) == labels).float().mean().item())
