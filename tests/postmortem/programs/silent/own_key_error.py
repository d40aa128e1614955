import torch

batch = {"x": torch.ones(2)}
batch["y"]
