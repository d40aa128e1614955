"""Conditional LSGAN on digits: labels embedded in both networks, one-sided soft targets, generator every batch, lists of losses."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self):
        bunch = load_digits()
        self.images = torch.tensor(bunch.images[:600], dtype=torch.float32) / 8 - 1
        self.labels = torch.tensor(bunch.target[:600])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i][None], self.labels[i]


class Generator(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.main = nn.Sequential(
            nn.Linear(latent + 8, 32 * 2 * 2), nn.Unflatten(1, (32, 2, 2)), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, z, y):
        return self.main(torch.cat([z, self.embed(y)], 1))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16)
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten()
        )
        self.out = nn.Sequential(nn.Linear(128 + 16, 32), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x, y):
        return self.out(torch.cat([self.conv(x), self.embed(y)], 1))


def main():
    torch.manual_seed(3)
    loader = DataLoader(Digits(), batch_size=50, shuffle=True)
    generator, discriminator = Generator(), Discriminator()
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(discriminator.parameters(), lr=5e-4, betas=(0.5, 0.999))
    criterion = nn.MSELoss()
    losses_g, losses_d = [], []
    for epoch in range(6):
        for images, labels in loader:
            n = images.size(0)
            valid, fake = torch.full((n, 1), 0.9), torch.zeros(n, 1)

            gen_labels = torch.randint(0, 10, (n,))
            generated = generator(torch.randn(n, 8), gen_labels)
            opt_g.zero_grad()
            g_loss = criterion(discriminator(generated, gen_labels), valid)
            g_loss.backward()
            opt_g.step()

            opt_d.zero_grad()
            real_loss = criterion(discriminator(images, labels), valid)
            fake_loss = criterion(discriminator(generated.detach(), gen_labels), fake)
            d_loss = (real_loss + fake_loss) / 2
            d_loss.backward()
            opt_d.step()

            losses_g.append(g_loss.item())
            losses_d.append(d_loss.item())
        print(f"epoch {epoch} D {losses_d[-1]:.3f} G {losses_g[-1]:.3f}")
    generator.eval()
    with torch.no_grad():
        grid = generator(torch.randn(20, 8), torch.arange(10).repeat(2))
    print(f"samples {tuple(grid.shape)} mean {grid.mean():.3f}")


if __name__ == "__main__":
    main()
