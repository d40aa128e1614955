"""The loss function of a tutorial, with the default reduction of the cross entropy and the sum of the divergence."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(64, 64), nn.Linear(64, 6), nn.Linear(64, 6)
        self.fc3, self.fc4 = nn.Linear(6, 64), nn.Linear(64, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main():
    torch.manual_seed(1)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    train = DataLoader(TensorDataset(images[:1400]), batch_size=64, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(8):
        model.train()
        for (x,) in train:
            optimizer.zero_grad()
            recon, mu, logvar = model(x)
            loss = loss_function(recon, x, mu, logvar)
            loss.backward()  # error: kl-outweighs-reconstruction
            optimizer.step()
        model.eval()
        with torch.no_grad():
            recon, mu, logvar = model(images[1400:])
            print(epoch, loss_function(recon, images[1400:], mu, logvar).item() / 397)


main()
