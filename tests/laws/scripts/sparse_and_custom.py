import torch
from _state import tell
from torch import nn

torch.manual_seed(20)


class Square(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        Square.calls += 1
        (x,) = ctx.saved_tensors
        return 2 * x * grad


embed, head = nn.Embedding(30, 6, sparse=True), nn.Linear(6, 1)
tied = nn.Linear(6, 6)
tied.bias = nn.Parameter(torch.zeros(6))
sparse = torch.optim.SparseAdam(embed.parameters(), 1e-2)
dense = torch.optim.Adagrad([*head.parameters(), *tied.parameters()], 1e-2)
scale = torch.ones(6, requires_grad=True)
for step in range(15):
    tokens = torch.randint(0, 30, (5, 3))
    sparse.zero_grad()
    dense.zero_grad()
    hidden = Square.apply(tied(embed(tokens)) * scale)
    loss = nn.functional.l1_loss(head(hidden.sum(1)), torch.zeros(5, 1))
    grads = torch.autograd.grad(loss, [head.weight, scale], create_graph=True)
    penalty = sum(g.pow(2).sum() for g in grads)
    (loss + 0.1 * penalty).backward()
    sparse.step()
    dense.step()
    with torch.no_grad():
        scale -= 0.01 * scale.grad
        scale.grad.zero_()
    print(step, repr(loss.item()), repr(penalty.item()), Square.calls, repr(scale.sum().item()))
tell(embed, head, tied, sparse, dense)
