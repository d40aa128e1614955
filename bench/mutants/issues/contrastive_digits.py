"""SimCLR-style pretraining on unlabelled digits, scored with a k-NN on held-out digits."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TEMPERATURE = 0.2
EPOCHS = 15
BATCH = 128


class Encoder(nn.Module):
    def __init__(self, width=128, feat_dim=32, proj_dim=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, feat_dim), nn.ReLU(),
        )
        self.projector = nn.Sequential(
            nn.Linear(feat_dim, feat_dim), nn.ReLU(), nn.Linear(feat_dim, proj_dim),
        )

    def forward(self, x):
        return self.projector(self.backbone(x))


def random_view(x):
    """Pixel noise, random dropout of pixels and a random gain."""
    keep = (torch.rand_like(x) > 0.25).float()
    gain = 0.7 + 0.6 * torch.rand(len(x), 1)
    return gain * x * keep + 0.1 * torch.randn_like(x)


def nt_xent(z1, z2, temperature):
    n = len(z1)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = torch.exp(z @ z.T / temperature)
    sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), 0.0)
    positives = torch.exp((z[:n] * z[n:]).sum(1) / temperature)
    positives = torch.cat([positives, positives])
    return -torch.log(positives / sim.sum(1)).mean()


@torch.no_grad()
def knn_accuracy(encoder, x_train, y_train, x_val, y_val):
    encoder.eval()
    f_train = F.normalize(encoder.backbone(x_train), dim=1)
    f_val = F.normalize(encoder.backbone(x_val), dim=1)
    knn = KNeighborsClassifier(n_neighbors=5).fit(f_train.numpy(), y_train)
    return knn.score(f_val.numpy(), y_val)


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    x_train, x_val, y_train, y_val = train_test_split(
        torch.tensor(X / 16.0, dtype=torch.float32), y, test_size=0.3, random_state=0, stratify=y
    )
    loader = DataLoader(TensorDataset(x_train), batch_size=BATCH, shuffle=True, drop_last=True)
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)

    for epoch in range(1, EPOCHS + 1):
        encoder.train()
        total = 0.0
        for (x,) in loader:
            loss = nt_xent(encoder(random_view(x)), encoder(random_view(x)), TEMPERATURE)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 0:
            acc = knn_accuracy(encoder, x_train, y_train, x_val, y_val)
            print(f"epoch {epoch:2d}  contrastive loss {total / len(loader):.4f}  knn acc {acc:.4f}")


if __name__ == "__main__":
    main()
