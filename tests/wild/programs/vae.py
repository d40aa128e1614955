"""Healthy: VAE in the examples' style: sum-reduced BCE plus KL divided by the batch size, sampling in eval mode."""
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, d=64, h=48, z=4):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2), see Appendix B from VAE paper
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def blobs(n):
    g = torch.arange(8.0)
    c = 1.5 + 4 * torch.rand(n, 2, 1)
    img = torch.exp(-0.5 * (g - c[:, 0])[:, :, None] ** 2) * torch.exp(-0.5 * (g - c[:, 1])[:, None, :] ** 2)
    return img.clamp(0.02, 0.98).unsqueeze(1)


torch.manual_seed(1)
torch.set_num_threads(1)
train_loader = torch.utils.data.DataLoader(blobs(1024), batch_size=64, shuffle=True)
test_loader = torch.utils.data.DataLoader(blobs(256), batch_size=64, shuffle=False)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=3e-3)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar) / len(data)
        loss.backward()
        train_loss += loss.item() * len(data)
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data in test_loader:
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
    print("====> Test set loss: {:.4f}".format(test_loss / len(test_loader.dataset)))


if __name__ == "__main__":
    for epoch in range(1, 7):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = model.decode(torch.randn(16, 4))
    print("mass of a sample", round(sample.sum((1,)).mean().item(), 4), "of data", round(blobs(256).sum((1, 2, 3)).mean().item(), 4))
