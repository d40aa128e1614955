"""Next words of image captions with one transformer block, as functions over a list of weights.

The captions are padded on the left, so that the last position of a batch is the last word of each, as it is wanted
when captions are completed. Padding is masked in the attention and left out of the loss.
"""

import gzip
import math
import os

import torch
import torch.nn.functional as F

PAD, UNK, BOS, EOS = 0, 1, 2, 3
D, HEADS, FF, MAX_LEN = 48, 4, 96, 18
BATCH, STEPS, DROPOUT = 40, 240, 0.1


def read(split, limit=None):
    path = os.path.join(os.environ["TRUESTEP_DATA"], "multi30k", f"{split}.en.gz")
    with gzip.open(path, "rt", encoding="utf-8") as f:
        lines = [line.lower().replace(".", " ").replace(",", " ").split() for line in f]
    lines = [words for words in lines if 4 <= len(words) <= MAX_LEN - 1]
    return lines[:limit]


def make_vocab(lines, at_least=4):
    counts = {}
    for words in lines:
        for w in words:
            counts[w] = counts.get(w, 0) + 1
    kept = sorted(w for w, n in counts.items() if n >= at_least)
    return {w: i for i, w in enumerate(["<pad>", "<unk>", "<s>", "</s>", *kept])}


def encode(lines, vocab):
    return [[BOS] + [vocab.get(w, UNK) for w in words] + [EOS] for words in lines]


def collate(rows):
    """Left-padded inputs and the tokens that follow them."""
    longest = max(len(r) for r in rows) - 1
    x = torch.full((len(rows), longest), PAD)
    y = torch.full((len(rows), longest), PAD)
    for i, r in enumerate(rows):
        x[i, longest - len(r) + 1 :] = torch.tensor(r[:-1])
        y[i, longest - len(r) + 1 :] = torch.tensor(r[1:])
    return x, y


def matrix(n_in, n_out, gen):
    return (torch.randn(n_in, n_out, generator=gen) / math.sqrt(n_in)).requires_grad_()


def init_weights(vocab_size, gen):
    """[embedding, positions, g1, b1, Wq, Wk, Wv, Wo, g2, b2, W1, c1, W2, c2, g3, b3, bias]; the output is tied."""
    small = [torch.randn(n, D, generator=gen).mul(0.1).requires_grad_() for n in (vocab_size, MAX_LEN + 1)]

    def norm():
        return [torch.ones(D, requires_grad=True), torch.zeros(D, requires_grad=True)]

    attention = [matrix(D, D, gen) for _ in range(4)]
    mlp = [matrix(D, FF, gen), torch.zeros(FF, requires_grad=True)]
    mlp += [matrix(FF, D, gen), torch.zeros(D, requires_grad=True)]
    bias = [torch.zeros(vocab_size, requires_grad=True)]
    return small + norm() + attention + norm() + mlp + norm() + bias


def layer_norm(x, gain, bias):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).mean(dim=-1, keepdim=True) + 1e-5) * gain + bias


def allowed(x):
    """(B, 1, T, T): may query position i look at key position j? Itself always, so that no row is empty."""
    t = x.shape[1]
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    keys = (x != PAD)[:, None, None, :]
    return (causal & keys) | torch.eye(t, dtype=torch.bool)


def attention(h, mask, wq, wk, wv, wo):
    b, t, _ = h.shape
    q, k, v = ((h @ w).view(b, t, HEADS, D // HEADS).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.transpose(-2, -1) / math.sqrt(D // HEADS)
    scores = scores.masked_fill(~mask, float("-inf"))
    mixed = torch.softmax(scores, dim=-1) @ v
    return mixed.transpose(1, 2).reshape(b, t, D) @ wo


def positions_of(x):
    """Counted from the first word of a caption, not from the padding; padding has the number 0."""
    return (x != PAD).long().cumsum(dim=1)


def forward(weights, x, train=False):
    emb, pos, g1, b1, wq, wk, wv, wo, g2, b2, w1, c1, w2, c2, g3, b3, bias = weights
    h = emb[x] * math.sqrt(D) + pos[positions_of(x)]
    h = F.dropout(h, DROPOUT, train)
    h = h + F.dropout(attention(layer_norm(h, g1, b1), allowed(x), wq, wk, wv, wo), DROPOUT, train)
    h = h + F.dropout(F.gelu(layer_norm(h, g2, b2) @ w1 + c1) @ w2 + c2, DROPOUT, train)
    return layer_norm(h, g3, b3) @ emb.T / math.sqrt(D) + bias


def token_loss(logits, y, smoothing=0.0):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, label_smoothing=smoothing)


@torch.no_grad()
def evaluate(weights, rows):
    """Perplexity and accuracy of a word, and how often the last word of a caption is guessed."""
    nats, right, words, last_right = 0.0, 0, 0, 0
    for start in range(0, len(rows), 100):
        x, y = collate(rows[start : start + 100])
        logits = forward(weights, x)
        real = y != PAD
        nats += token_loss(logits, y).item() * real.sum().item()
        right += ((logits.argmax(-1) == y) & real).sum().item()
        words += real.sum().item()
        last_right += (logits[:, -2].argmax(-1) == y[:, -2]).sum().item()  # the last position predicts the end
    return math.exp(nats / words), right / words, last_right / len(rows)


def learning_rate(step, peak=8e-3, warmup=30):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (STEPS - warmup)
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def batches(rows, gen):
    """Captions of like length together, in another order each time."""
    while True:
        order = torch.randperm(len(rows), generator=gen).tolist()
        for start in range(0, len(order) - BATCH * 8 + 1, BATCH * 8):
            pool = sorted(order[start : start + BATCH * 8], key=lambda i: len(rows[i]))
            for b in torch.randperm(8, generator=gen).tolist():
                yield collate([rows[i] for i in pool[b * BATCH : (b + 1) * BATCH]])


def main():
    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    lines = read("train", 5000)
    vocab = make_vocab(lines)
    train, val, test = encode(lines, vocab), encode(read("val"), vocab), encode(read("test_2016_flickr"), vocab)
    print(f"captions {len(train)} {len(val)} {len(test)}, {len(vocab)} words")
    weights = init_weights(len(vocab), gen)
    matrices, vectors = [w for w in weights if w.dim() > 1], [w for w in weights if w.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.98)
    )
    best, kept, running = float("inf"), None, 0.0
    feed = batches(train, gen)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        x, y = next(feed)
        loss = token_loss(forward(weights, x, train=True), y, smoothing=0.05)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        running += loss.item()
        if (step + 1) % 60 == 0:
            perplexity, accuracy, last = evaluate(weights, val)
            print(f"step {step + 1} loss {running / 60:.4f} val perplexity {perplexity:.3f} accuracy {accuracy:.4f}")
            running = 0.0
            if perplexity < best:
                best, kept = perplexity, [w.detach().clone() for w in weights]
    perplexity, accuracy, last = evaluate(kept, test)
    print(f"test perplexity {perplexity:.4f} accuracy {accuracy:.5f} last word {last:.5f} (val perplexity {best:.4f})")


if __name__ == "__main__":
    main()
