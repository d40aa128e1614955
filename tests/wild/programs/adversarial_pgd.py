"""Healthy: TRADES-style PGD: attack in eval mode through autograd.grad on the input, back to train mode, then one step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
                                  nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.fc = nn.Linear(16 * 16, 3)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def trades_loss(model, x_natural, y, optimizer, step_size=0.1, epsilon=0.25, perturb_steps=3, beta=3.0):
    criterion_kl = nn.KLDivLoss(reduction="sum")
    model.eval()
    batch_size = len(x_natural)
    # generate adversarial example
    with torch.no_grad():
        p_natural = F.softmax(model(x_natural), dim=1)
    x_adv = x_natural.detach() + 0.001 * torch.randn_like(x_natural)
    for _ in range(perturb_steps):
        x_adv.requires_grad_()
        with torch.enable_grad():
            loss_kl = criterion_kl(F.log_softmax(model(x_adv), dim=1), p_natural)
        grad = torch.autograd.grad(loss_kl, [x_adv])[0]
        x_adv = x_adv.detach() + step_size * torch.sign(grad.detach())
        x_adv = torch.min(torch.max(x_adv, x_natural - epsilon), x_natural + epsilon)
    model.train()

    x_adv = x_adv.detach()
    # zero gradient
    optimizer.zero_grad()
    # calculate robust loss
    logits = model(x_natural)
    loss_natural = F.cross_entropy(logits, y)
    loss_robust = (1.0 / batch_size) * criterion_kl(F.log_softmax(model(x_adv), dim=1), F.softmax(logits, dim=1))
    return loss_natural + beta * loss_robust


templates = torch.randn(3, 1, 8, 8)


def batch(n):
    y = torch.randint(0, 3, (n,))
    return 0.7 * templates[y] + 0.7 * torch.randn(n, 1, 8, 8), y


model = SmallNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for batch_idx in range(60):
    data, target = batch(48)
    loss = trades_loss(model, data, target, optimizer)
    loss.backward()
    optimizer.step()
    if batch_idx % 20 == 0:
        print("Train step {} Loss: {:.6f}".format(batch_idx, loss.item()))

model.eval()
data, target = batch(300)
with torch.no_grad():
    print("clean accuracy", round((model(data).argmax(1) == target).float().mean().item(), 4), "last loss", round(loss.item(), 4))
