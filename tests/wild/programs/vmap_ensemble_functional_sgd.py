"""An ensemble by torch.func: stacked states, vmap over grad_and_value, SGD on dictionaries without any optimizer or backward call."""
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(0)
MEMBERS, LR, MOMENTUM = 4, 0.1, 0.9


def blobs(n):
    labels = torch.randint(0, 3, (n,))
    centres = torch.tensor([[0.0, 2.0], [-2.0, -1.0], [2.0, -1.0]])
    return centres[labels] + 0.7 * torch.randn(n, 2), labels


models = [nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3)) for _ in range(MEMBERS)]
skeleton = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3)).to("meta")
params, buffers = stack_module_state(models)
params = {name: p.detach() for name, p in params.items()}
velocity = {name: torch.zeros_like(p) for name, p in params.items()}


def loss_fn(params, buffers, x, y):
    return nn.functional.cross_entropy(functional_call(skeleton, (params, buffers), (x,)), y)


step_fn = vmap(grad_and_value(loss_fn), in_dims=(0, 0, 0, 0))
for step in range(120):
    batches = [blobs(32) for _ in range(MEMBERS)]
    x, y = (torch.stack(parts) for parts in zip(*batches))
    grads, losses = step_fn(params, buffers, x, y)
    velocity = {name: MOMENTUM * velocity[name] + grads[name] for name in grads}
    params = {name: params[name] - LR * velocity[name] for name in params}
    if step % 40 == 0:
        print(f"step {step} losses {[round(v, 3) for v in losses.tolist()]}")

x, y = blobs(600)
logits = vmap(lambda p, b: functional_call(skeleton, (p, b), (x,)))(params, buffers)
print("single", (logits.argmax(-1) == y).float().mean(1).tolist())
print("ensemble", (logits.softmax(-1).mean(0).argmax(-1) == y).float().mean().item())
