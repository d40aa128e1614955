"""Healthy: quantisation-aware training with fake quantisers by hand: observers off after a while, integer inference to compare."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.ao.quantization import (
    FakeQuantize,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    disable_observer,
    enable_observer,
)

torch.manual_seed(0)
torch.set_num_threads(1)


def activation_quantizer():
    return FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8, reduce_range=False)


def weight_quantizer():
    return FakeQuantize(
        MovingAveragePerChannelMinMaxObserver, quant_min=-8, quant_max=7, dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)


class QATLinear(nn.Linear):
    def __init__(self, i, o):
        super().__init__(i, o)
        self.weight_fake_quant, self.activation_post_process = weight_quantizer(), activation_quantizer()

    def forward(self, x):
        return F.linear(self.activation_post_process(x), self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, linear):
        module = cls(linear.in_features, linear.out_features)
        module.weight, module.bias = linear.weight, linear.bias
        return module


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
float_model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))


def train(model, epochs, lr, freeze_at=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        if epoch == freeze_at:
            model.apply(disable_observer)
        for index in torch.randperm(1300).split(50):
            loss = F.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x[1300:]).argmax(1) == y[1300:]).float().mean().item()


train(float_model, 5, 0.1)
baseline = accuracy(float_model)

model = copy.deepcopy(float_model)
for i, layer in enumerate(model):
    if isinstance(layer, nn.Linear):
        model[i] = QATLinear.from_float(layer)
model.apply(enable_observer)
with torch.no_grad():
    model.train()(x[:200])  # calibrate
quantised = accuracy(model.apply(disable_observer))
model.apply(enable_observer)
train(model, 4, 0.02, freeze_at=3)
print(f"float {baseline:.3f}, rounded to 4 bits {quantised:.3f}, after training for it {accuracy(model):.3f}")
scale, zero_point = model[0].weight_fake_quant.calculate_qparams()
integers = torch.round(model[0].weight / scale[:, None]).clamp(-8, 7)
print("values of the first layer:", int(integers.min()), "to", int(integers.max()))
