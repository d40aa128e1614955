"""Healthy: PixelCNN: masked convolutions that multiply weight.data in every forward; sampling pixel by pixel without gradients."""
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils import data

torch.manual_seed(0)
torch.set_num_threads(1)


class MaskedConv2d(nn.Conv2d):
    def __init__(self, mask_type, *args, **kwargs):
        super(MaskedConv2d, self).__init__(*args, **kwargs)
        assert mask_type in {"A", "B"}
        self.register_buffer("mask", self.weight.data.clone())
        _, _, kH, kW = self.weight.size()
        self.mask.fill_(1)
        self.mask[:, :, kH // 2, kW // 2 + (mask_type == "B"):] = 0
        self.mask[:, :, kH // 2 + 1:] = 0

    def forward(self, x):
        self.weight.data *= self.mask
        return super(MaskedConv2d, self).forward(x)


fm = 16
net = nn.Sequential(
    MaskedConv2d("A", 1, fm, 5, 1, 2, bias=False), nn.BatchNorm2d(fm), nn.ReLU(True),
    MaskedConv2d("B", fm, fm, 3, 1, 1, bias=False), nn.BatchNorm2d(fm), nn.ReLU(True),
    MaskedConv2d("B", fm, fm, 3, 1, 1, bias=False), nn.BatchNorm2d(fm), nn.ReLU(True),
    nn.Conv2d(fm, 4, 1))
images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
tr = data.DataLoader(data.TensorDataset(images[:900]), batch_size=90, shuffle=True)
te = data.DataLoader(data.TensorDataset(images[900:1200]), batch_size=150, shuffle=False)
optimizer = optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    err_tr = []
    net.train(True)
    for (input,) in tr:
        target = (input[:, 0] * 3.99).long()
        loss = nn.functional.cross_entropy(net(input), target)
        err_tr.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    err_te = []
    net.train(False)
    with torch.no_grad():
        for (input,) in te:
            err_te.append(nn.functional.cross_entropy(net(input), (input[:, 0] * 3.99).long()).item())

    sample = torch.zeros(9, 1, 8, 8)
    with torch.no_grad():
        for i in range(8):
            for j in range(8):
                probs = nn.functional.softmax(net(sample)[:, :, i, j], dim=-1)
                sample[:, 0, i, j] = torch.multinomial(probs, 1).squeeze(1).float() / 3.0
    print("epoch={}; nll_tr={:.4f}; nll_te={:.4f}; mean of samples {:.3f}".format(
        epoch, sum(err_tr) / len(err_tr), sum(err_te) / len(err_te), sample.mean().item()))
