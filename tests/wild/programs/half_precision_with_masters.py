"""bfloat16 weights with float32 masters by hand, dynamic loss scaling by hand in float16 for a second model."""
import torch
import torch.nn as nn

torch.manual_seed(0)
truth = torch.randn(16, 1)


def batch(n=128):
    x = torch.randn(n, 16)
    return x, (x @ truth).tanh()


class Masters:
    """Holds float32 copies; the model's own weights are low precision views of them."""

    def __init__(self, model, dtype):
        self.model = model.to(dtype)
        self.low = list(model.parameters())
        self.high = [p.detach().clone().float().requires_grad_() for p in self.low]

    def push(self):
        with torch.no_grad():
            torch._foreach_copy_(self.low, self.high)

    def pull(self, inverse=1.0):
        ok = True
        for h, l in zip(self.high, self.low):
            h.grad = l.grad.float() * inverse
            ok = ok and bool(torch.isfinite(h.grad).all())
            l.grad = None
        return ok


for dtype in (torch.bfloat16, torch.float16):
    net = Masters(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)), dtype)
    opt = torch.optim.Adam(net.high, lr=3e-3)
    scale, good, skipped = (2.0**24, 0, 0) if dtype is torch.float16 else (1.0, 0, 0)
    for step in range(150):
        x, y = batch()
        out = net.model(x.to(dtype)).float()
        loss = (out - y).square().mean()
        (loss * scale).backward()
        if net.pull(1 / scale):
            torch.nn.utils.clip_grad_norm_(net.high, 1.0)
            opt.step()
            net.push()
            good += 1
            if good % 50 == 0 and dtype is torch.float16:
                scale *= 2
        else:
            scale, skipped = scale / 2, skipped + 1
        if step % 50 == 0:
            print(dtype, step, round(loss.item(), 5))
    print(dtype, "final", round(loss.item(), 5), "scale", scale, "skipped", skipped)
