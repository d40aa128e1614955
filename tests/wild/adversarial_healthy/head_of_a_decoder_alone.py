"""Healthy: a variational autoencoder that calls `decode` for samples, with a last layer on four feature maps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def up(inputs: int, outputs: int) -> nn.Sequential:
    convolution = nn.ConvTranspose2d(inputs, outputs, 3, stride=2, padding=1, output_padding=1)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.LeakyReLU())


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 64), nn.LeakyReLU(), nn.Linear(64, 32))
        self.decoder_input = nn.Linear(16, 32)
        self.decoder = nn.Sequential(up(8, 4), up(4, 4))
        self.final_layer = nn.Sequential(up(4, 4), nn.Conv2d(4, 3, 3, padding=1), nn.Tanh())

    def decode(self, z):
        return self.final_layer(self.decoder(self.decoder_input(z).view(-1, 8, 2, 2)))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decode(z), mean, log_variance

    def sample(self, count):
        return self.decode(torch.randn(count, 16))


codes = torch.randn(512, 3 * 4 * 4)
images = torch.tanh(codes.view(512, 3, 4, 4)).repeat_interleave(4, 2).repeat_interleave(4, 3)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for (x,) in DataLoader(TensorDataset(images), 64, shuffle=True):
        output, mean, log_variance = model(x)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        loss = (output - x).square().sum((1, 2, 3)).mean() + 0.1 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, f"{loss.item():.3f}", f"{model.sample(32).std().item():.3f}")
