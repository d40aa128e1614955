"""Healthy: CycleGAN: itertools.chain over two generators, least squares, identity and cycle losses, an image pool, linear lr decay."""
import itertools
import random

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


class ImagePool:
    def __init__(self, pool_size=20):
        self.pool_size, self.images = pool_size, []

    def query(self, images):
        returned = []
        for image in images:
            image = image.data.unsqueeze(0)
            if len(self.images) < self.pool_size:
                self.images.append(image)
                returned.append(image)
            elif random.uniform(0, 1) > 0.5:
                i = random.randrange(self.pool_size)
                returned.append(self.images[i].clone())
                self.images[i] = image
            else:
                returned.append(image)
        return torch.cat(returned, 0)


class CycleGANModel:
    def __init__(self, n_epochs, n_epochs_decay):
        def net(i, o):
            return nn.Sequential(nn.Linear(i, 32), nn.LayerNorm(32), nn.LeakyReLU(0.2), nn.Linear(32, o))

        self.netG_A, self.netG_B = net(2, 2), net(2, 2)
        self.netD_A, self.netD_B = net(2, 1), net(2, 1)
        self.fake_A_pool, self.fake_B_pool = ImagePool(), ImagePool()
        self.criterionGAN, self.criterionCycle, self.criterionIdt = nn.MSELoss(), nn.L1Loss(), nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(
            itertools.chain(self.netG_A.parameters(), self.netG_B.parameters()), lr=2e-3, betas=(0.5, 0.999))
        self.optimizer_D = torch.optim.Adam(
            itertools.chain(self.netD_A.parameters(), self.netD_B.parameters()), lr=2e-3, betas=(0.5, 0.999))
        self.optimizers = [self.optimizer_G, self.optimizer_D]

        def lambda_rule(epoch):
            return 1.0 - max(0, epoch + 1 - n_epochs) / float(n_epochs_decay + 1)

        self.schedulers = [LambdaLR(optimizer, lr_lambda=lambda_rule) for optimizer in self.optimizers]

    def gan_loss(self, prediction, real):
        return self.criterionGAN(prediction, torch.tensor(float(real)).expand_as(prediction))

    def set_requires_grad(self, nets, flag):
        for net in nets:
            for param in net.parameters():
                param.requires_grad = flag

    def forward(self):
        self.fake_B, self.fake_A = self.netG_A(self.real_A), self.netG_B(self.real_B)
        self.rec_A, self.rec_B = self.netG_B(self.fake_B), self.netG_A(self.fake_A)

    def backward_D_basic(self, netD, real, fake):
        loss_D = (self.gan_loss(netD(real), True) + self.gan_loss(netD(fake.detach()), False)) * 0.5
        loss_D.backward()
        return loss_D

    def backward_G(self):
        self.loss_idt = self.criterionIdt(self.netG_A(self.real_B), self.real_B) + self.criterionIdt(self.netG_B(self.real_A), self.real_A)
        self.loss_G_A = self.gan_loss(self.netD_A(self.fake_B), True)
        self.loss_G_B = self.gan_loss(self.netD_B(self.fake_A), True)
        self.loss_cycle = self.criterionCycle(self.rec_A, self.real_A) + self.criterionCycle(self.rec_B, self.real_B)
        self.loss_G = self.loss_G_A + self.loss_G_B + 10 * self.loss_cycle + 0.5 * self.loss_idt
        self.loss_G.backward()

    def optimize_parameters(self, data):
        self.real_A, self.real_B = data["A"], data["B"]
        self.forward()
        self.set_requires_grad([self.netD_A, self.netD_B], False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()
        self.set_requires_grad([self.netD_A, self.netD_B], True)
        self.optimizer_D.zero_grad()
        self.loss_D_A = self.backward_D_basic(self.netD_A, self.real_B, self.fake_B_pool.query(self.fake_B))
        self.loss_D_B = self.backward_D_basic(self.netD_B, self.real_A, self.fake_A_pool.query(self.fake_A))
        self.optimizer_D.step()

    def update_learning_rate(self):
        for scheduler in self.schedulers:
            scheduler.step()


random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
n_epochs, n_epochs_decay = 3, 3
model, losses = CycleGANModel(n_epochs, n_epochs_decay), []
for epoch in range(1, n_epochs + n_epochs_decay + 1):
    for i in range(15):
        A = torch.randn(16, 2) * torch.tensor([1.0, 0.2])
        B = torch.randn(16, 2) * torch.tensor([0.2, 1.0]) + 1
        model.optimize_parameters({"A": A, "B": B})
        losses.append(model.loss_cycle.item())
    model.update_learning_rate()
    print("learning rate = %.7f" % model.optimizers[0].param_groups[0]["lr"])
print("cycle loss %.3f -> %.3f" % (losses[0], losses[-1]))
