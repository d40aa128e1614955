"""Healthy: gradient caching for a large contrastive batch: representations without a graph, their gradients, then backward chunk by chunk."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


class RandContext:
    """The random state at the first forward, so that dropout is the same in the second."""

    def __init__(self):
        self.state = torch.get_rng_state()

    def __enter__(self):
        self._fork = torch.random.fork_rng(devices=[])
        self._fork.__enter__()
        torch.set_rng_state(self.state)

    def __exit__(self, *exc):
        self._fork.__exit__(*exc)


class GradCache:
    def __init__(self, models, chunk_size, loss_fn):
        self.models, self.chunk_size, self.loss_fn = models, chunk_size, loss_fn

    def forward_no_grad(self, model, chunks):
        states, reps = [], []
        with torch.no_grad():
            for x in chunks:
                states.append(RandContext())
                reps.append(model(x))
        return torch.cat(reps), states

    def cache_step(self, *inputs):
        chunked = [x.split(self.chunk_size) for x in inputs]
        all_reps, all_states = zip(*(self.forward_no_grad(m, c) for m, c in zip(self.models, chunked)))
        reps = [r.detach().requires_grad_() for r in all_reps]
        loss = self.loss_fn(*reps)
        loss.backward()
        cache = [r.grad.split(self.chunk_size) for r in reps]
        for model, chunks, gradients, states in zip(self.models, chunked, cache, all_states):
            for x, gradient, state in zip(chunks, gradients, states):
                with state:
                    y = model(x)
                surrogate = torch.dot(y.flatten(), gradient.flatten())
                surrogate.backward()
        return loss.detach()


def contrastive(x, y):
    scores = F.normalize(x, dim=1) @ F.normalize(y, dim=1).T / 0.1
    return F.cross_entropy(scores, torch.arange(len(scores)))


def encoder(i):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 12))


queries, passages = encoder(10), encoder(14)
parameters = [*queries.parameters(), *passages.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=3e-3)
gc = GradCache([queries, passages], chunk_size=16, loss_fn=contrastive)
to_query, to_passage = torch.randn(6, 10), torch.randn(6, 14)
for step in range(150):
    meaning = torch.randn(64, 6)
    optimizer.zero_grad()
    loss = gc.cache_step(meaning @ to_query + 0.1 * torch.randn(64, 10), meaning @ to_passage + 0.1 * torch.randn(64, 14))
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f}")
queries.eval(), passages.eval()
with torch.no_grad():
    meaning = torch.randn(100, 6)
    hits = (F.normalize(queries(meaning @ to_query), dim=1) @ F.normalize(passages(meaning @ to_passage), dim=1).T).argmax(1) == torch.arange(100)
print(f"recall@1 of 100: {hits.float().mean():.2f}")
