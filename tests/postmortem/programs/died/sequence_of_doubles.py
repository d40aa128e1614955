# says: the weights of `gru` are float32
import numpy
import torch

waves = torch.from_numpy(numpy.sin(numpy.arange(24.0)).reshape(2, 4, 3))  # related
gru = torch.nn.GRU(3, 5)
print(gru(waves)[0].shape)  # died: different-types
