"""K-FAC in forty lines: Kronecker factors from module hooks, preconditioned gradients set by hand, SGD does the rest."""
import torch
import torch.nn as nn


class KFAC:
    def __init__(self, net, damping=0.03, every=5, decay=0.9):
        self.layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
        self.A, self.G, self.inv = {}, {}, {}
        self.damping, self.every, self.decay, self.t = damping, every, decay, 0
        for m in self.layers:
            m.register_forward_pre_hook(self._inputs)
            m.register_full_backward_hook(self._outputs)

    def _mix(self, store, m, new):
        store[m] = new if m not in store else self.decay * store[m] + (1 - self.decay) * new

    @torch.no_grad()
    def _inputs(self, m, args):
        if torch.is_grad_enabled() or m.training:
            a = args[0].detach()
            a = torch.cat([a, a.new_ones(len(a), 1)], 1)
            self._mix(self.A, m, a.T @ a / len(a))

    @torch.no_grad()
    def _outputs(self, m, grad_in, grad_out):
        g = grad_out[0] * len(grad_out[0])
        self._mix(self.G, m, g.T @ g / len(g))

    @torch.no_grad()
    def precondition(self):
        if self.t % self.every == 0:
            for m in self.layers:
                eye = lambda M: torch.eye(len(M)) * self.damping**0.5
                self.inv[m] = torch.linalg.inv(self.A[m] + eye(self.A[m])), torch.linalg.inv(self.G[m] + eye(self.G[m]))
        self.t += 1
        for m in self.layers:
            Ai, Gi = self.inv[m]
            v = Gi @ torch.cat([m.weight.grad, m.bias.grad[:, None]], 1) @ Ai
            nu = min(1.0, (0.05 / (v * torch.cat([m.weight.grad, m.bias.grad[:, None]], 1)).sum().clamp(min=1e-12)).sqrt().item())
            m.weight.grad.copy_(nu * v[:, :-1])
            m.bias.grad = (nu * v[:, -1]).contiguous()


torch.manual_seed(0)
x = torch.randn(512, 10)
t = (x[:, :3].sin().sum(1) > x[:, 3]).long()


def train(use_kfac):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.3 if use_kfac else 0.1, momentum=0.9)
    pre = KFAC(net) if use_kfac else None
    curve = []
    for step in range(60):
        i = torch.randint(0, 512, (128,))
        loss = nn.functional.cross_entropy(net(x[i]), t[i])
        opt.zero_grad()
        loss.backward()
        if pre:
            pre.precondition()
        opt.step()
        curve.append(loss.item())
    return [round(c, 3) for c in curve[::12]], round(curve[-1], 3)


print("sgd ", *train(False))
print("kfac", *train(True))
