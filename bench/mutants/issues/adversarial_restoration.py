"""Adversarial restoration of noisy digits: L1 + GAN loss, as in pix2pix."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

LAMBDA_L1 = 2.0
NOISE = 0.6


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2),
            nn.Linear(128, 64), nn.Sigmoid(),
        )

    def forward(self, noisy):
        return self.net(noisy)


class Discriminator(nn.Module):
    """Scores (input, candidate) pairs."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(128, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1),
        )

    def forward(self, noisy, image):
        return self.net(torch.cat([noisy, image], dim=1))


def adversarial(logits, is_real):
    target = torch.full_like(logits, 1.0 if is_real else 0.0)
    return F.binary_cross_entropy_with_logits(logits, target)


class Restorer:
    def __init__(self):
        self.G, self.D = Generator(), Discriminator()
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=5e-4, betas=(0.5, 0.999))

    def step(self, clean):
        noisy = clean + NOISE * torch.randn_like(clean)
        fake = self.G(noisy)

        self.opt_d.zero_grad()
        d_loss = 0.5 * (
            adversarial(self.D(noisy, clean), True)
            + adversarial(self.D(noisy, fake.detach()), False)
        )
        d_loss.backward()
        self.opt_d.step()

        self.opt_g.zero_grad()
        g_adv = adversarial(self.D(noisy, fake), True)
        g_l1 = F.l1_loss(fake, clean)
        (g_adv + LAMBDA_L1 * g_l1).backward()
        self.opt_g.step()
        return d_loss.item(), g_adv.item(), g_l1.item()

    @torch.no_grad()
    def evaluate(self, noisy, clean):
        self.G.eval()
        self.D.eval()
        fake = self.G(noisy)
        caught = (self.D(noisy, fake) < 0).float().mean().item()
        contrast = (fake.std(1).mean() / clean.std(1).mean()).item()
        l1 = F.l1_loss(fake, clean).item()
        self.G.train()
        self.D.train()
        return l1, contrast, caught


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16.0, dtype=torch.float32)
    train, val = train_test_split(X, test_size=0.25, random_state=0, stratify=y)
    val_noisy = val + NOISE * torch.randn_like(val)

    restorer = Restorer()
    for epoch in range(1, 31):
        sums = torch.zeros(3)
        batches = torch.randperm(len(train)).split(64)
        for idx in batches:
            sums += torch.tensor(restorer.step(train[idx]))
        d_loss, g_adv, g_l1 = (sums / len(batches)).tolist()
        if epoch % 5 == 0:
            l1, contrast, caught = restorer.evaluate(val_noisy, val)
            print(
                f"epoch {epoch:2d}  D {d_loss:.3f}  G adv {g_adv:.3f}  G l1 {g_l1:.3f}  | val l1 {l1:.4f}  "
                f"contrast vs real {contrast:.3f}  fakes caught {caught:.3f}"
            )


if __name__ == "__main__":
    main()
