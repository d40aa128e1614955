"""Healthy: custom autograd Functions: a Swish with hand-written backward and a gradient-reversal layer (domain adaptation)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class Swish(Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)

    @staticmethod
    def backward(ctx, grad_output):
        (i,) = ctx.saved_tensors
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature1 = nn.Linear(6, 32)
        self.feature2 = nn.Linear(32, 16)
        self.class_classifier = nn.Linear(16, 2)
        self.domain_classifier = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x, alpha):
        feature = Swish.apply(self.feature2(Swish.apply(self.feature1(x))))
        reverse_feature = ReverseLayerF.apply(feature, alpha)
        return self.class_classifier(feature), self.domain_classifier(reverse_feature)


def domain(n, shift):
    y = torch.randint(0, 2, (n,))
    x = 0.7 * torch.randn(n, 6)
    x[:, 0] += 1.6 * y.float() - 0.8
    x[:, 1] += shift
    return x, y


torch.manual_seed(0)
torch.set_num_threads(1)
assert torch.autograd.gradcheck(Swish.apply, (torch.randn(4, 3, dtype=torch.double, requires_grad=True),))

net = DANN()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
n_steps = 120
for step in range(n_steps):
    p = step / n_steps
    alpha = 2.0 / (1.0 + 2.718281828 ** (-10 * p)) - 1
    s_x, s_y = domain(64, 0.5)
    t_x, _ = domain(64, -0.5)

    net.zero_grad()
    class_output, domain_output = net(s_x, alpha)
    err_s_label = F.cross_entropy(class_output, s_y)
    err_s_domain = F.cross_entropy(domain_output, torch.zeros(64, dtype=torch.long))
    _, domain_output = net(t_x, alpha)
    err_t_domain = F.cross_entropy(domain_output, torch.ones(64, dtype=torch.long))
    err = err_s_label + 0.3 * (err_s_domain + err_t_domain)
    err.backward()
    optimizer.step()

net.eval()
with torch.no_grad():
    t_x, t_y = domain(1000, -0.5)
    acc = (net(t_x, 0.0)[0].argmax(1) == t_y).float().mean().item()
print("label loss %.4f, domain loss %.4f, target accuracy %.4f" % (
    err_s_label.item(), (err_s_domain + err_t_domain).item() / 2, acc))
