"""Healthy: a scaled loss with gradients that are unscaled by hand, and a second optimizer in fp32 beside the scaler."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def main(steps=80):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.randn(256, 8), torch.randint(0, 3, (256,))
    x[torch.arange(256), y] += 3.0
    body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    head = nn.Linear(8, 3)
    temperature = nn.Parameter(torch.ones(()))
    hand = torch.optim.SGD(body.parameters(), lr=0.05)
    through = torch.optim.SGD(head.parameters(), lr=0.05)
    plain = torch.optim.SGD([temperature], lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for step in range(steps):
        pick = torch.randint(0, 256, (64,))
        hand.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(body(x[pick]), y[pick])
        scaler.scale(loss).backward()
        for p in body.parameters():
            p.grad.data.mul_(1.0 / scaler.get_scale())
        if all(torch.isfinite(p.grad).all() for p in body.parameters()):
            hand.step()

        through.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            first = F.cross_entropy(head(x[pick]), y[pick])
        scaler.scale(first).backward()
        penalty = head.weight.square().sum() * 1e-3
        (penalty * scaler.get_scale()).backward()
        scaler.step(through)
        scaler.update()

        plain.zero_grad()
        calibrated = F.cross_entropy(body(x).detach() / temperature, y)
        calibrated.backward()
        plain.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.3f} {first.item():.3f} {calibrated.item():.3f} {temperature.item():.3f}")


if __name__ == "__main__":
    main()
