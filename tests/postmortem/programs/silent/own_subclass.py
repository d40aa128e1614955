import torch


class Mine(RuntimeError):
    pass


loss = torch.ones(1, requires_grad=True).exp()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    raise Mine(str(error)) from None
