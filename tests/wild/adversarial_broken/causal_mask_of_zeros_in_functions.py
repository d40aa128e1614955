"""Broken: a language model of functions and plain tensors; its causal mask is zero instead of minus infinity."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
SIZE, WIDTH, LENGTH = 13, 24, 12
params = {
    "token": torch.randn(SIZE, WIDTH) * 0.3, "place": torch.randn(LENGTH, WIDTH) * 0.3,
    "q": torch.randn(WIDTH, WIDTH) * 0.2, "k": torch.randn(WIDTH, WIDTH) * 0.2, "v": torch.randn(WIDTH, WIDTH) * 0.2,
    "out": torch.randn(WIDTH, SIZE) * 0.2,
}
for value in params.values():
    value.requires_grad_()
optimizer = torch.optim.Adam(params.values(), lr=5e-3)


def attend(x):
    q, k, v = x @ params["q"], x @ params["k"], x @ params["v"]
    scores = q @ k.mT / WIDTH**0.5
    visible = torch.tril(torch.ones(x.shape[1], x.shape[1]))
    scores = scores.masked_fill(visible == 0, 0)  # error: masked-scores-in-softmax
    return F.softmax(scores, dim=-1) @ v


def predict(tokens):
    x = params["token"][tokens] + params["place"][: tokens.shape[1]]
    return (x + attend(x)) @ params["out"]


for step in range(60):
    start, stride = torch.randint(SIZE, (32, 1)), torch.randint(1, 4, (32, 1))
    text = (start + stride * torch.arange(LENGTH)) % SIZE
    loss = F.cross_entropy(predict(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step}: loss {loss.item():.3f}")
