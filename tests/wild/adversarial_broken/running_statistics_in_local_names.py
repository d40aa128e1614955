"""Layers without modules: running statistics that go to local names, and stay at zero and one."""

import torch

torch.manual_seed(4)


class Dense:
    def __init__(self, inputs, outputs):
        self.w = (torch.randn(inputs, outputs) * inputs**-0.5).requires_grad_()

    def __call__(self, x):
        return x @ self.w


class Normalise:
    def __init__(self, size, momentum=0.1):
        self.gain, self.bias = torch.ones(size, requires_grad=True), torch.zeros(size, requires_grad=True)
        self.running_mean, self.running_var = torch.zeros(size), torch.ones(size)
        self.momentum, self.training = momentum, True

    def __call__(self, x):
        if not self.training:
            return self.gain * (x - self.running_mean) / (self.running_var + 1e-5).sqrt() + self.bias
        mean, var = x.mean(0), x.var(0)
        with torch.no_grad():
            running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean  # error: result-never-read
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
        return self.gain * (x - mean) / (var + 1e-5).sqrt() + self.bias


x = torch.randn(400, 6) + 2
y = (x[:, :1] * x[:, 1:2]).tanh()
layers = [Dense(6, 32), Normalise(32), torch.relu, Dense(32, 1)]
weights = [layers[0].w, layers[1].gain, layers[1].bias, layers[3].w]
optimizer = torch.optim.Adam(weights, lr=1e-2)
for _ in range(80):
    rows = torch.randint(300, (32,))
    out = x[rows]
    for layer in layers:
        out = layer(out)
    loss = (out - y[rows]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
layers[1].training = False
with torch.no_grad():
    out = x[300:]
    for layer in layers:
        out = layer(out)
    print(f"held-out error {(out - y[300:]).square().mean():.3f}")
