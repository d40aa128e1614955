"""Healthy: skip-gram with negative sampling, sparse embedding gradients and SparseAdam."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class SkipGramDataset(Dataset):
    def __init__(self, corpus, window=2):
        self.pairs = [(corpus[i], corpus[j]) for i in range(len(corpus))
                      for j in range(max(0, i - window), min(len(corpus), i + window + 1)) if i != j]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class SkipGramModel(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super().__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        initrange = 1.0 / emb_dimension
        nn.init.uniform_(self.u_embeddings.weight.data, -initrange, initrange)
        nn.init.uniform_(self.v_embeddings.weight.data, -initrange, initrange)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u = self.u_embeddings(pos_u)
        score = (emb_u * self.v_embeddings(pos_v)).sum(1).clamp(-10, 10)
        neg_score = torch.bmm(self.v_embeddings(neg_v), emb_u.unsqueeze(2)).squeeze(2).clamp(-10, 10)
        return -(F.logsigmoid(score) + F.logsigmoid(-neg_score).sum(1)).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocab, topics = 80, 4
    corpus = []
    for t in torch.randint(0, topics, (150,)).tolist():  # sentences of one topic each
        corpus += torch.randint(t * 20, (t + 1) * 20, (10,)).tolist()
    loader = DataLoader(SkipGramDataset(corpus), batch_size=128, shuffle=True)
    model = SkipGramModel(vocab, 16)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)

    for epoch in range(3):
        running_loss = 0.0
        for i, (pos_u, pos_v) in enumerate(loader):
            neg_v = torch.randint(0, vocab, (len(pos_u), 5))
            optimizer.zero_grad()
            loss = model(pos_u, pos_v, neg_v)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * len(pos_u)
        print(f"epoch {epoch} loss {running_loss / len(loader.dataset):.4f}")

    with torch.no_grad():
        e = F.normalize(model.u_embeddings.weight, dim=1)
        sim = (e @ e.T).fill_diagonal_(-1)
    same_topic = (sim.argmax(1) // 20 == torch.arange(vocab) // 20).float().mean().item()
    print("nearest neighbour of the same topic:", round(same_topic, 4))


main()
