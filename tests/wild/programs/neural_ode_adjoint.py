"""Healthy: neural ODE with the adjoint method by hand: a Function that runs autograd.grad backwards in time, in its own backward."""
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


def rk4(f, t, dt, y):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class ODEAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y0, times, func, *flat):
        ctx.func = func
        states = [y0]
        with torch.no_grad():
            for t0, t1 in zip(times, times[1:]):
                states.append(rk4(func, t0, t1 - t0, states[-1]))
        out = torch.stack(states)
        ctx.save_for_backward(times, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        times, states = ctx.saved_tensors
        func, params = ctx.func, tuple(ctx.func.parameters())
        adjoint, grads = grad_out[-1], [torch.zeros_like(p) for p in params]

        def dynamics(t, y, a):
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                f = func(t, y)
                df_dy, *df_dp = torch.autograd.grad(f, (y, *params), -a, allow_unused=True)
            return f.detach(), df_dy, df_dp

        for i in range(len(times) - 1, 0, -1):
            t, dt = times[i], times[i - 1] - times[i]
            # midpoint rule, backwards
            f1, a1, _ = dynamics(t, states[i], adjoint)
            _, a2, p2 = dynamics(t + dt / 2, states[i] + dt / 2 * f1, adjoint + dt / 2 * a1)
            adjoint = adjoint + dt * a2 + grad_out[i - 1]
            grads = [g + dt * d for g, d in zip(grads, p2)]
        return (adjoint, None, None, *grads)


def odeint_adjoint(func, y0, times):
    return ODEAdjoint.apply(y0, times, func, *func.parameters())


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
times = torch.linspace(0.0, 4.0, 81)
true_y = [torch.tensor([[2.0, 0.0]])]
for a, b in zip(times, times[1:]):
    true_y.append(rk4(lambda t, y: y**3 @ true_A, a, b - a, true_y[-1]))
true_y = torch.stack(true_y)

func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=5e-3)
history = []
for itr in range(1, 61):
    optimizer.zero_grad()
    s = torch.randint(0, 70, (16,))
    batch_y0 = true_y[s]
    batch_y = torch.stack([true_y[s + i] for i in range(8)])
    pred_y = odeint_adjoint(func, batch_y0, times[:8])
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    history.append(loss.item())
with torch.no_grad():
    gap = (odeint_adjoint(func, true_y[0], times) - true_y).abs().mean()
print(f"loss {sum(history[:5]) / 5:.4f} -> {sum(history[-5:]) / 5:.4f}, whole trajectory {gap:.3f}, evaluations {func.nfe}")
