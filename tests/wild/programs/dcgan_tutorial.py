"""Healthy: DCGAN in the tutorial's style: two backwards for D (real, detached fake), then G's backward through D."""
import random

import torch
import torch.nn as nn
import torch.optim as optim

manualSeed = 999
random.seed(manualSeed)
torch.manual_seed(manualSeed)
torch.set_num_threads(1)

batch_size = 32
nz, ngf, ndf = 16, 12, 12
lr = 0.0002
beta1 = 0.5
device = "cpu"


def make_images(n):
    """8x8 images in [-1, 1] with one bright bar."""
    imgs = -torch.ones(n, 1, 8, 8) + 0.1 * torch.rand(n, 1, 8, 8)
    for i in range(n):
        k = random.randrange(8)
        if i % 2:
            imgs[i, 0, k] = 0.9
        else:
            imgs[i, 0, :, k] = 0.9
    return imgs


dataloader = torch.utils.data.DataLoader(make_images(640), batch_size=batch_size, shuffle=True)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input)


netG = Generator().to(device)
netG.apply(weights_init)
netD = Discriminator().to(device)
netD.apply(weights_init)

criterion = nn.BCELoss()
fixed_noise = torch.randn(64, nz, 1, 1, device=device)
real_label, fake_label = 1.0, 0.0
optimizerD = optim.Adam(netD.parameters(), lr=lr, betas=(beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=lr, betas=(beta1, 0.999))

G_losses, D_losses = [], []
for epoch in range(3):
    for i, data in enumerate(dataloader, 0):
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = data.to(device)
        label = torch.full((batch_size,), real_label, dtype=torch.float, device=device)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        noise = torch.randn(batch_size, nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(fake_label)
        errD_fake = criterion(netD(fake.detach()).view(-1), label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()

        # (2) Update G network: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)
        errG = criterion(netD(fake).view(-1), label)
        errG.backward()
        optimizerG.step()

        if i % 10 == 0:
            print("[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f D(x): %.4f" % (
                epoch, 3, i, len(dataloader), errD.item(), errG.item(), D_x))
        G_losses.append(errG.item())
        D_losses.append(errD.item())

netG.eval()
with torch.no_grad():
    samples = netG(fixed_noise)
print("sample mean %.4f, final D %.4f G %.4f" % (samples.mean().item(), D_losses[-1], G_losses[-1]))
