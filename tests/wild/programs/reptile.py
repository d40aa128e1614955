"""Healthy: Reptile: a fresh inner optimizer on a deep copy per task, outer update written by hand on the weights."""
import copy

import numpy as np
import torch
from torch import nn

seed = 0
rng = np.random.RandomState(seed)
torch.manual_seed(seed)
torch.set_num_threads(1)

innerstepsize, innersteps = 0.05, 5
outerstepsize0 = 0.5
niterations = 120
x_all = np.linspace(-2, 2, 50)[:, None].astype(np.float32)


def gen_task(rng=rng):
    phase = rng.uniform(low=0, high=np.pi)
    ampl = rng.uniform(0.5, 2)
    return lambda x: (np.sin(2 * x + phase) * ampl).astype(np.float32)


model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
loss_fn = nn.MSELoss()


def train_on_task(net, f, steps):
    opt = torch.optim.SGD(net.parameters(), lr=innerstepsize)
    for _ in range(steps):
        ind = rng.permutation(len(x_all))[:10]
        opt.zero_grad()
        loss = loss_fn(net(torch.from_numpy(x_all[ind])), torch.from_numpy(f(x_all[ind])))
        loss.backward()
        opt.step()
    return net


def test_error(steps):
    test_rng = np.random.RandomState(1000)  # the same new tasks every time
    errors = []
    for _ in range(10):
        f = gen_task(test_rng)
        net = train_on_task(copy.deepcopy(model), f, steps)
        with torch.no_grad():
            errors.append(loss_fn(net(torch.from_numpy(x_all)), torch.from_numpy(f(x_all))).item())
    return float(np.mean(errors))


before = test_error(innersteps)
for iteration in range(niterations):
    fast = train_on_task(copy.deepcopy(model), gen_task(), innersteps)
    outerstepsize = outerstepsize0 * (1 - iteration / niterations)
    with torch.no_grad():
        for p, q in zip(model.parameters(), fast.parameters()):
            p += outerstepsize * (q - p)

print("mse after five inner steps on new tasks: %.4f untrained, %.4f meta-trained" % (before, test_error(innersteps)))
