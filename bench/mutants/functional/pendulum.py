"""Friction and gravity of a pendulum from noisy observations: a physics-informed fit.

theta'' + c theta' + k sin(theta) = 0. The angle is a small network of time, made of plain tensors; c and k are fitted
with it by L-BFGS. The weight of the physics is chosen on observations that were left out, then the observed time is
rebuilt and the time after it is forecast.
"""

import math

import numpy as np
import torch
from scipy.integrate import solve_ivp

torch.set_default_dtype(torch.float64)
C_TRUE, K_TRUE, SPEED_TRUE = 0.25, 2.5, 0.0
T_SEEN, T_END = 5.0, 8.0
NOISE = 0.08


def true_angle(t):
    def rhs(_, s):
        return [s[1], -C_TRUE * s[1] - K_TRUE * math.sin(s[0])]

    sol = solve_ivp(rhs, (0, T_END), [2.2, SPEED_TRUE], t_eval=t.numpy(), rtol=1e-10, atol=1e-10)
    return torch.tensor(sol.y[0])


def observations(n=50, seed=0):
    rng = np.random.default_rng(seed)
    t = torch.tensor(np.sort(rng.uniform(0, T_SEEN, n)))
    angle = true_angle(t) + torch.tensor(rng.normal(0, NOISE, n))
    held_out = torch.zeros(n, dtype=torch.bool)
    held_out[torch.tensor(rng.permutation(n)[: n // 4])] = True
    return (t[~held_out], angle[~held_out]), (t[held_out], angle[held_out])


def start_theta(seed, width=24):
    """All that is fitted: layers of the network, and the logarithms of c and k."""
    g = torch.Generator().manual_seed(seed)

    def layer(n_in, n_out):
        w = torch.randn(n_in, n_out, generator=g) / math.sqrt(n_in)
        return [w, torch.zeros(n_out)]

    net = layer(1, width) + layer(width, width) + layer(width, 1)
    net[0] *= 3.0
    physics = [torch.tensor(math.log(0.5)), torch.tensor(math.log(1.5))]
    return [p.requires_grad_() for p in net + physics]


def angle_at(theta, t):
    w1, b1, w2, b2, w3, b3 = theta[:6]
    h = torch.tanh((2 * t / T_END - 1).unsqueeze(1) @ w1 + b1)
    h = torch.tanh(h @ w2 + b2)
    return (h @ w3 + b3).squeeze(1)


def derivative(y, t):
    return torch.autograd.grad(y.sum(), t, create_graph=True)[0]


def residual(theta, t):
    c, k = theta[6].exp(), theta[7].exp()
    t = t.clone().requires_grad_(True)
    y = angle_at(theta, t)
    speed = derivative(y, t)
    acceleration = derivative(speed, t)
    return acceleration + c * speed + k * torch.sin(y)


def rmse(theta, t, target):
    with torch.no_grad():
        return (angle_at(theta, t) - target).pow(2).mean().sqrt().item()


def objective(theta, seen, inner, weight):
    t, y = seen
    misfit = (angle_at(theta, t) - y).pow(2).mean()
    start = angle_at(theta, torch.zeros(1)) - 2.2  # the pendulum is let go from a known angle
    return misfit + weight * residual(theta, inner).pow(2).mean() + start.pow(2).mean()


def fit(seen, weight, seed=0, rounds=12):
    theta = start_theta(seed)
    inner = torch.linspace(0, T_END, 80)

    def run(optimizer, weight, times):
        def closure():
            optimizer.zero_grad()
            loss = objective(theta, seen, times, weight)
            loss.backward()
            return loss

        return optimizer.step(closure).item()

    # first the data alone and the observed time, then all of it
    adam = torch.optim.Adam(theta, lr=0.01)
    for _ in range(150):
        run(adam, 0.1 * weight, inner[inner <= T_SEEN])
    losses = []
    lbfgs = torch.optim.LBFGS(
        theta, max_iter=25, history_size=30, line_search_fn="strong_wolfe", tolerance_grad=1e-9, tolerance_change=1e-12
    )
    for _ in range(rounds):
        losses.append(run(lbfgs, weight, inner))
    return theta, losses


def report(theta, seen):
    grid = torch.linspace(0, T_END, 401)
    truth = true_angle(grid)
    past, future = grid <= T_SEEN, grid > T_SEEN
    c, k = theta[6].exp().item(), theta[7].exp().item()
    print(f"friction {c:.4f} (true {C_TRUE}) gravity {k:.4f} (true {K_TRUE})")
    print(f"residual {residual(theta, grid).pow(2).mean().sqrt().item():.5f}")
    print(f"rmse observed time {rmse(theta, grid[past], truth[past]):.5f}")
    print(f"rmse forecast      {rmse(theta, grid[future], truth[future]):.5f}")
    resting = (truth[future] - seen[1].mean()).pow(2).mean().sqrt().item()
    print(f"rmse of a constant {resting:.5f}, noise {NOISE}")


def main():
    seen, left_out = observations()
    best = None
    for weight in (1e-4, 1e-2):
        theta, losses = fit(seen, weight)
        error = rmse(theta, *left_out)
        print(f"weight {weight:.0e} loss {losses[0]:.6f} -> {losses[-1]:.6f} left out {error:.5f}")
        if best is None or error < best[0]:
            best = (error, weight, theta)
    error, weight, theta = best
    print(f"chosen weight {weight:.0e}, left out {error:.5f}")
    report(theta, seen)


if __name__ == "__main__":
    main()
