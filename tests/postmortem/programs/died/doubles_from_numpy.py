# says: `x` is float64, the weights of `model.0` are float32
# says: numpy defaults to float64
# says: `x = x.float()`
import numpy as np
import torch
from torch import nn

data = np.random.default_rng(0).normal(size=(64, 10))
model = nn.Sequential(nn.Linear(10, 1))
x = torch.from_numpy(data)  # related
loss = model(x).mean()  # died: different-types
