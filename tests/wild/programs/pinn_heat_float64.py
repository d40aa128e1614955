"""Healthy: heat equation in float64: second derivatives, terms weighted, Adam first and LBFGS for the rest over the same parameters."""
import numpy as np
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(1234)
np.random.seed(1234)
torch.set_num_threads(1)


class DNN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(layers, layers[1:]))
        for linear in self.linears:
            nn.init.xavier_normal_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x):
        for linear in self.linears[:-1]:
            x = torch.tanh(linear(x))
        return self.linears[-1](x)


class PhysicsInformedNN:
    """u_t = k u_xx on [-1, 1], u(0, x) = sin(pi x), u = 0 at the ends; k is learned from data."""

    def __init__(self):
        self.dnn = DNN([2, 20, 20, 1])
        self.log_k = nn.Parameter(torch.tensor([np.log(0.3)]))
        self.dnn.register_parameter("log_k", self.log_k)
        t, x = np.random.rand(200, 1), 2 * np.random.rand(200, 1) - 1
        self.t_f, self.x_f = torch.tensor(t, requires_grad=True), torch.tensor(x, requires_grad=True)
        t, x = np.random.rand(80, 1), 2 * np.random.rand(80, 1) - 1
        self.data = torch.tensor(np.hstack([t, x]))
        self.u = torch.tensor(np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x))
        self.optimizer_adam = torch.optim.Adam(self.dnn.parameters(), lr=5e-3)
        self.optimizer = torch.optim.LBFGS(
            self.dnn.parameters(), lr=1.0, max_iter=60, history_size=20, tolerance_grad=1e-8, line_search_fn="strong_wolfe")
        self.iter = 0

    def net_f(self):
        u = self.dnn(torch.cat([self.t_f, self.x_f], dim=1))
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, self.t_f, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, self.x_f, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, self.x_f, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        return u_t - torch.exp(self.log_k) * u_xx

    def loss_func(self):
        loss_u = torch.mean((self.u - self.dnn(self.data)) ** 2)
        loss_f = torch.mean(self.net_f() ** 2)
        return 10 * loss_u + loss_f

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.loss_func()
        loss.backward()
        self.iter += 1
        return loss

    def train(self, n_iter):
        self.dnn.train()
        for epoch in range(n_iter):
            loss = self.loss_func()
            self.optimizer_adam.zero_grad()
            loss.backward()
            self.optimizer_adam.step()
        print("Adam: loss %.3e, k %.4f" % (loss.item(), torch.exp(self.log_k).item()))
        self.optimizer.step(self.closure)
        print("LBFGS: loss %.3e, k %.4f after %d evaluations" % (self.loss_func().item(), torch.exp(self.log_k).item(), self.iter))

    def predict(self, t, x):
        self.dnn.eval()
        return self.dnn(torch.tensor(np.hstack([t, x]))).detach().cpu().numpy()


model = PhysicsInformedNN()
model.train(150)
grid = np.linspace(-1, 1, 21)[:, None]
error = np.abs(model.predict(0 * grid + 0.5, grid) - np.exp(-0.05 * np.pi**2) * np.sin(np.pi * grid)).max()
print("largest error at t=0.5: %.4f" % error)
