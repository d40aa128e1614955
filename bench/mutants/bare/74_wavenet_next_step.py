"""Next-step prediction with dilated causal convolutions (functions only): the target is the input shifted by one."""
import math
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def waves(n, length=65):
    t = torch.arange(length) * 0.25
    f = torch.rand(n, 1) * 0.6 + 0.7
    phase = torch.rand(n, 1) * 2 * math.pi
    return torch.sin(f * t + phase) + 0.5 * torch.sin(2.3 * f * t)


train, test = waves(600), waves(150)
C, dilations = 12, [1, 2, 4, 8]
params = {'in.w': torch.randn(C, 1, 2) * 0.7, 'in.b': torch.zeros(C)}
for i in range(len(dilations)):
    params |= {f'f{i}': torch.randn(C, C, 2) * 0.2, f'g{i}': torch.randn(C, C, 2) * 0.2, f'r{i}': torch.randn(C, C, 1) * 0.28}
params |= {'out.w': torch.randn(1, C, 1) * 0.28, 'out.b': torch.zeros(1)}
params = {k: v.requires_grad_() for k, v in params.items()}


def causal(x, w, b=None, d=1):
    return F.conv1d(F.pad(x, (d * (w.shape[-1] - 1), 0)), w, b, dilation=d)


def predict_next(x):
    h = causal(x.unsqueeze(1), params['in.w'], params['in.b'])
    skip = 0
    for i, d in enumerate(dilations):
        z = torch.tanh(causal(h, params[f'f{i}'], d=d)) * torch.sigmoid(causal(h, params[f'g{i}'], d=d))
        skip = skip + z
        h = h + F.conv1d(z, params[f'r{i}'])
    return F.conv1d(skip, params['out.w'], params['out.b']).squeeze(1)


def shifted_mse(seq):
    inputs, targets = seq[:, :-1], seq[:, 1:]
    return F.mse_loss(predict_next(inputs)[:, 15:], targets[:, 15:])      # after the receptive field is filled


optimizer = torch.optim.Adam(params.values(), lr=5e-3)
for epoch in range(5):
    for idx in torch.randperm(len(train)).split(30):
        loss = shifted_mse(train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        naive = F.mse_loss(test[:, 15:-1], test[:, 16:]).item()
        print(f'epoch {epoch} train {loss.item():.5f} test {shifted_mse(test).item():.5f} (repeat the last value {naive:.4f})')
