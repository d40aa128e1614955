"""WGAN with weight clipping: five critic steps per generator step, batches by next() on itertools.cycle of a loader."""
import itertools

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
real = torch.cat([torch.randn(400, 2) * 0.2 + torch.tensor([1.5, 0.0]), torch.randn(400, 2) * 0.2 - torch.tensor([1.5, 0.0])])
batches = itertools.cycle(DataLoader(TensorDataset(real), batch_size=80, shuffle=True))

netG = nn.Sequential(nn.Linear(4, 32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 2))
netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizerD = optim.RMSprop(netD.parameters(), lr=5e-4)
optimizerG = optim.RMSprop(netG.parameters(), lr=5e-4)
fixed_noise = torch.randn(200, 4)

gen_iterations = 0
while gen_iterations < 60:
    for p in netD.parameters():  # reset requires_grad
        p.requires_grad = True
    for _ in range(5):
        for p in netD.parameters():
            p.data.clamp_(-0.05, 0.05)
        (data,) = next(batches)
        netD.zero_grad()
        errD_real = netD(data).mean()
        with torch.no_grad():
            fake = netG(torch.randn(len(data), 4))
        errD_fake = netD(fake).mean()
        errD = errD_fake - errD_real
        errD.backward()
        optimizerD.step()

    for p in netD.parameters():
        p.requires_grad = False  # to avoid computation
    netG.zero_grad()
    errG = -netD(netG(torch.randn(80, 4))).mean()
    errG.backward()
    optimizerG.step()
    gen_iterations += 1
    if gen_iterations % 20 == 0:
        with torch.no_grad():
            samples = netG(fixed_noise)
        print(f"[{gen_iterations}] Loss_D {errD.item():.4f} Loss_G {errG.item():.4f} spread {samples.std(0).tolist()}")
