"""Healthy: SIREN fitted to an image, the loss on the network's own spatial gradient in turn; coordinates cloned and set to need grad inside forward."""
import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import nn


class SineLayer(nn.Module):
    def __init__(self, in_features, out_features, bias=True, is_first=False, omega_0=30):
        super().__init__()
        self.omega_0, self.is_first, self.in_features = omega_0, is_first, in_features
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.init_weights()

    def init_weights(self):
        with torch.no_grad():
            bound = 1 / self.in_features if self.is_first else np.sqrt(6 / self.in_features) / self.omega_0
            self.linear.weight.uniform_(-bound, bound)

    def forward(self, input):
        return torch.sin(self.omega_0 * self.linear(input))


class Siren(nn.Module):
    def __init__(self, in_features, hidden_features, hidden_layers, out_features):
        super().__init__()
        net = [SineLayer(in_features, hidden_features, is_first=True)]
        net += [SineLayer(hidden_features, hidden_features) for _ in range(hidden_layers)]
        final_linear = nn.Linear(hidden_features, out_features)
        with torch.no_grad():
            bound = np.sqrt(6 / hidden_features) / 30
            final_linear.weight.uniform_(-bound, bound)
        self.net = nn.Sequential(*net, final_linear)

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)  # allows to take derivative w.r.t. input
        return self.net(coords), coords


def gradient(y, x):
    return torch.autograd.grad(y, [x], grad_outputs=torch.ones_like(y), create_graph=True)[0]


torch.manual_seed(0)
torch.set_num_threads(1)
picture = torch.tensor(load_sample_images().images[0][::14, ::21].mean(-1), dtype=torch.float32)[:30, :30] / 127.5 - 1
axis = torch.linspace(-1, 1, 30)
model_input = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
ground_truth = picture.reshape(-1, 1)
slopes = torch.stack(torch.gradient(picture, spacing=2 / 29), -1).reshape(-1, 2)

img_siren = Siren(2, 48, 2, 1)
optim = torch.optim.Adam(lr=1e-3, params=img_siren.parameters())
for step in range(91):
    model_output, coords = img_siren(model_input)
    if step % 3:
        loss = ((model_output - ground_truth) ** 2).mean()
    else:
        loss = 1e-3 * ((gradient(model_output, coords) - slopes) ** 2).sum(-1).mean()
    if step % 30 == 1:
        print("Step %d, Total loss %0.5f" % (step, loss.item()))
    optim.zero_grad()
    loss.backward()
    optim.step()
fit = ((img_siren(model_input)[0].detach() - ground_truth) ** 2).mean()
print("error %.5f" % fit.item())
