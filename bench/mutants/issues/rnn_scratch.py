# Chapter 9: a recurrent network from scratch that must remember the first symbol
import torch
import torch.nn.functional as F

torch.manual_seed(14)

vocab_size, seq_len, num_hiddens = 8, 10, 48
num_train, num_val = 2000, 500


def make_sequences(n):
    """The sequences end with the query symbol 7; the answer is the first symbol of the sequence."""
    tokens = torch.randint(0, vocab_size - 1, (n, seq_len))
    answers = tokens[:, 0].clone()
    tokens[:, -1] = vocab_size - 1
    return tokens, answers


X_train, y_train = make_sequences(num_train)
X_val, y_val = make_sequences(num_val)


def get_params():
    def normal(*shape, scale):
        return torch.randn(*shape) * scale

    W_xh = normal(vocab_size, num_hiddens, scale=0.3)
    W_hh = torch.eye(num_hiddens) * 0.9 + normal(num_hiddens, num_hiddens, scale=0.02)
    b_h = torch.zeros(num_hiddens)
    W_hq = normal(num_hiddens, vocab_size, scale=0.1)
    b_q = torch.zeros(vocab_size)
    params = [W_xh, W_hh, b_h, W_hq, b_q]
    for p in params:
        p.requires_grad_(True)
    return params


def rnn(inputs, state, params):
    # inputs: (num_steps, batch_size, vocab_size)
    W_xh, W_hh, b_h, W_hq, b_q = params
    H = state
    for X in inputs:
        H = torch.tanh(X @ W_xh + H @ W_hh + b_h)
    return H @ W_hq + b_q, H


def forward(tokens, params):
    inputs = F.one_hot(tokens.T, vocab_size).float()
    state = torch.zeros(len(tokens), num_hiddens)
    logits, _ = rnn(inputs, state, params)
    return logits


def clip_gradients(params, theta):
    norm = torch.sqrt(sum((p.grad ** 2).sum() for p in params))
    if norm > theta:
        for p in params:
            p.grad.mul_(theta / norm)


@torch.no_grad()
def evaluate(params, X, y):
    logits = forward(X, params)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


params = get_params()
lr, batch_size, num_epochs = 0.4, 50, 25
for epoch in range(1, num_epochs + 1):
    total = 0.0
    for idx in torch.randperm(num_train).split(batch_size):
        loss = F.cross_entropy(forward(X_train[idx], params), y_train[idx])
        for p in params:
            p.grad = None
        loss.backward()
        clip_gradients(params, 1.0)
        with torch.no_grad():
            for p in params:
                p -= lr * p.grad
        total += loss.item() * len(idx)
    if epoch % 5 == 0:
        val_loss, val_acc = evaluate(params, X_val, y_val)
        print(f'epoch {epoch}, train loss {total / num_train:.4f}, val loss {val_loss:.4f}, val acc {val_acc:.4f}')

print('answer accuracy on new sequences: %.4f' % evaluate(params, X_val, y_val)[1])
