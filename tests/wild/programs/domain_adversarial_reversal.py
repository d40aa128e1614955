"""Healthy: DANN: a gradient reversal Function, strength raised over the run, two loaders zipped, the target labels never used."""
import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.utils.data import DataLoader, TensorDataset


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
        super(DANN, self).__init__()
        self.feature = nn.Sequential()
        self.feature.add_module("f_fc1", nn.Linear(2, 32))
        self.feature.add_module("f_relu1", nn.ReLU(True))
        self.feature.add_module("f_fc2", nn.Linear(32, 16))
        self.feature.add_module("f_relu2", nn.ReLU(True))
        self.class_classifier = nn.Sequential()
        self.class_classifier.add_module("c_fc1", nn.Linear(16, 2))
        self.class_classifier.add_module("c_softmax", nn.LogSoftmax(dim=1))
        self.domain_classifier = nn.Sequential()
        self.domain_classifier.add_module("d_fc1", nn.Linear(16, 16))
        self.domain_classifier.add_module("d_relu1", nn.ReLU(True))
        self.domain_classifier.add_module("d_fc2", nn.Linear(16, 2))
        self.domain_classifier.add_module("d_softmax", nn.LogSoftmax(dim=1))

    def forward(self, input_data, alpha):
        feature = self.feature(input_data)
        return self.class_classifier(feature), self.domain_classifier(ReverseLayerF.apply(feature, alpha))


def moons(n, angle, rng):
    label = rng.integers(0, 2, n)
    t = np.pi * rng.random(n)
    x = np.stack([np.cos(t) + label - 0.5, np.sin(t) * (1 - 2 * label) + 0.25 * (2 * label - 1)], 1) + 0.08 * rng.normal(size=(n, 2))
    c, s = np.cos(angle), np.sin(angle)
    return TensorDataset(torch.tensor(x @ np.array([[c, -s], [s, c]]), dtype=torch.float32), torch.tensor(label))


torch.manual_seed(0)
torch.set_num_threads(1)
rng = np.random.default_rng(0)
source, target = moons(600, 0.0, rng), moons(480, 0.5, rng)
dataloader_source = DataLoader(source, batch_size=60, shuffle=True)
dataloader_target = DataLoader(target, batch_size=60, shuffle=True)
my_net = DANN()
optimizer = torch.optim.Adam(my_net.parameters(), lr=5e-3)
loss_class, loss_domain = nn.NLLLoss(), nn.NLLLoss()
n_epoch, len_dataloader = 12, min(len(dataloader_source), len(dataloader_target))
for epoch in range(n_epoch):
    data_source_iter, data_target_iter = iter(dataloader_source), iter(dataloader_target)
    for i in range(len_dataloader):
        p = float(i + epoch * len_dataloader) / n_epoch / len_dataloader
        alpha = 2.0 / (1.0 + np.exp(-10 * p)) - 1
        s_img, s_label = next(data_source_iter)
        my_net.zero_grad()
        class_output, domain_output = my_net(s_img, alpha=alpha)
        err_s_label = loss_class(class_output, s_label)
        err_s_domain = loss_domain(domain_output, torch.zeros(len(s_img)).long())
        t_img, _ = next(data_target_iter)
        _, domain_output = my_net(t_img, alpha=alpha)
        err_t_domain = loss_domain(domain_output, torch.ones(len(t_img)).long())
        err = 0.3 * (err_t_domain + err_s_domain) + err_s_label
        err.backward()
        optimizer.step()
my_net.eval()
with torch.no_grad():
    for name, data in ("source", source), ("target", target):
        pred = my_net(data.tensors[0], alpha=0)[0].argmax(1)
        print(f"accuracy on the {name}: {(pred == data.tensors[1]).float().mean():.3f}")
