import torch
import torch.nn.functional as F

torch.manual_seed(21)
n, d = 2000, 16
teacher = torch.randn(d, 3)
X = torch.randn(n, d)
Y = (torch.tanh(X @ teacher) + 0.05 * torch.randn(n, 3))
X_train, Y_train, X_test, Y_test = X[:1600], Y[:1600], X[1600:], Y[1600:]

params = [torch.randn(d, 32) * 0.25, torch.zeros(32), torch.randn(32, 3) * 0.18, torch.zeros(3)]
for p in params:
    p.requires_grad_(True)


def net(x):
    a, b, c, e = params
    return torch.tanh(x @ a + b) @ c + e


micro, accumulate, lr, momentum = 20, 4, 0.1, 0.9
buffers = [torch.zeros_like(p) for p in params]
epoch = 0
while epoch < 15:
    order = torch.randperm(len(X_train))
    for step, idx in enumerate(order.split(micro), start=1):
        loss = F.mse_loss(net(X_train[idx]), Y_train[idx]) / accumulate
        loss.backward()                       # gradients add up over four micro-batches
        if step % accumulate == 0:
            with torch.no_grad():
                for p, buf in zip(params, buffers):
                    buf.mul_(momentum).add_(p.grad)
                    p.sub_(buf, alpha=lr)
            for p in params:
                p.grad.zero_()
    epoch += 1
    if epoch % 5 == 0:
        with torch.no_grad():
            print(f'epoch {epoch}: train {F.mse_loss(net(X_train), Y_train).item():.4f} test {F.mse_loss(net(X_test), Y_test).item():.4f}')
