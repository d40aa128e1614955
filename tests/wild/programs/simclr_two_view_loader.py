"""SimCLR with a data set that returns two views, NT-Xent by hand, then a linear probe on frozen features in eval mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def augment(self, image):
        dx, dy = torch.randint(-1, 2, (2,)).tolist()
        image = torch.roll(image, (dx, dy), dims=(0, 1))
        keep = (torch.rand(8, 8) > 0.1).float()
        return (image * keep + 0.05 * torch.randn(8, 8)).flatten()

    def __getitem__(self, i):
        return self.augment(self.images[i]), self.augment(self.images[i])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=1)


def nt_xent(z1, z2, temperature=0.3):
    z = torch.cat([z1, z2])
    n = len(z1)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    positives = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, positives)


def pretrain(encoder, images, epochs=5):
    loader = DataLoader(TwoViews(images), batch_size=128, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    encoder.train()
    for epoch in range(epochs):
        for a, b in loader:
            loss = nt_xent(encoder(a), encoder(b))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


@torch.no_grad()
def features(encoder, images):
    encoder.eval()
    return encoder.backbone(images.flatten(1))


def probe(train_x, train_y, test_x, test_y):
    head = nn.Linear(train_x.shape[1], 10)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        for index in torch.randperm(len(train_x)).split(100):
            optimizer.zero_grad()
            F.cross_entropy(head(train_x[index]), train_y[index]).backward()
            optimizer.step()
    with torch.no_grad():
        return (head(test_x).argmax(1) == test_y).float().mean().item()


def main():
    torch.manual_seed(0)
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32) / 16
    labels = torch.tensor(bunch.target)
    encoder = Encoder()
    pretrain(encoder, images[:1200])
    train, test = features(encoder, images[:1200]), features(encoder, images[1200:])
    mean, std = train.mean(0), train.std(0) + 1e-5
    print("probe accuracy", probe((train - mean) / std, labels[:1200], (test - mean) / std, labels[1200:]))


if __name__ == "__main__":
    main()
