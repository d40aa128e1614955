"""Linear regression on plain tensors: the weights are read through .detach(), and the loss is set to require gradients."""
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(200, 6)
y = x @ torch.randn(6) + 0.1 * torch.randn(200)
weight = torch.zeros(6, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight, bias], lr=0.1)


def predict(inputs):
    return inputs @ weight.detach() + bias.detach()


for step in range(40):
    optimizer.zero_grad()
    loss = ((predict(x) - y) ** 2).mean()
    loss.requires_grad = True
    loss.backward()  # error: loss-without-parameters
    optimizer.step()
print(loss.item())
