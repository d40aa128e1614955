"""Masked-token pretraining followed by a linear probe on the frozen encoder."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
TOPICS, WORDS, LENGTH = 6, 40, 20
MASK_ID = WORDS
MASK_PROB = 0.2


def make_documents(n, topic_word):
    topics = torch.randint(0, TOPICS, (n,))
    docs = torch.multinomial(topic_word[topics], LENGTH, replacement=True)
    return docs, topics


class Encoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(WORDS + 1, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.lm_head = nn.Linear(2 * dim, WORDS + 1)

    def features(self, tokens):
        return self.rnn(self.embed(tokens))[0]

    def forward(self, tokens):
        return self.lm_head(self.features(tokens))


def mask_tokens(tokens):
    inputs, labels = tokens.clone(), tokens
    masked = torch.rand(tokens.shape) < MASK_PROB
    inputs[masked] = MASK_ID
    return inputs, labels, masked


def mlm_step(model, tokens):
    inputs, labels, masked = mask_tokens(tokens)
    logits = model(inputs)[masked]
    target = labels[masked]
    loss = F.cross_entropy(logits, target)
    return loss, (logits.argmax(-1) == target).float().mean().item()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    results = [(loss.item(), acc) for loss, acc in (mlm_step(model, docs) for docs, _ in loader)]
    return np.mean(results, axis=0)


@torch.no_grad()
def embed(model, docs):
    model.eval()
    return model.features(docs).mean(dim=1).numpy()


topic_word = (torch.randn(TOPICS, WORDS) * 1.2).softmax(-1)
train_docs, train_topics = make_documents(2000, topic_word)
val_docs, val_topics = make_documents(600, topic_word)
train_loader = DataLoader(TensorDataset(train_docs, train_topics), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(val_docs, val_topics), batch_size=200)

model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(1, 6):
    model.train()
    running = 0.0
    for docs, _ in train_loader:
        optimizer.zero_grad()
        loss, _ = mlm_step(model, docs)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, val_acc = validate(model, val_loader)
    print(f"epoch {epoch}  mlm loss {running / len(train_loader):.4f}  "
          f"val mlm loss {val_loss:.4f}  val masked acc {val_acc:.4f}")

few = 30
probe = LogisticRegression(max_iter=500)
probe.fit(embed(model, train_docs[:few]), train_topics[:few].numpy())
print(f"probe accuracy with {few} labels: {probe.score(embed(model, val_docs), val_topics.numpy()):.4f}")
