import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

random.seed(8)
torch.manual_seed(8)

PAD = 0
VOCAB = 12          # tokens 1..11, 0 is padding
MAX_LEN = 40


def make_sequence():
    """Label: whether the running balance of 'up' (1-3) and 'down' (4-6) tokens ends above zero."""
    n = random.randint(3, MAX_LEN)
    tokens = [random.randint(1, VOCAB - 1) for _ in range(n)]
    balance = 0
    for t in tokens:
        if t <= 3:
            balance += 1
        elif t <= 6:
            balance -= 1
        balance = max(-3, min(3, balance))
    return torch.tensor(tokens), int(balance > 0)


class BalanceRNN(nn.Module):
    def __init__(self, emb=12, hidden=24):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.rnn = nn.RNN(emb, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, tokens, lengths):
        output, _ = self.rnn(self.embedding(tokens))
        last = output[torch.arange(len(tokens)), lengths - 1]
        return self.fc(last).squeeze(1)


def collate(samples):
    seqs, labels = zip(*samples)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=PAD), lengths, torch.tensor(labels).float()


def batches(samples, size, shuffle):
    order = list(range(len(samples)))
    if shuffle:
        random.shuffle(order)
    for i in range(0, len(order), size):
        yield collate([samples[j] for j in order[i:i + size]])


data = [make_sequence() for _ in range(1400)]
train_data, val_data = data[:1000], data[1000:]
print('share of positives in validation: %.3f' % (sum(l for _, l in val_data) / len(val_data)))

model = BalanceRNN()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluate(samples):
    model.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for tokens, lengths, y in batches(samples, 200, shuffle=False):
            logits = model(tokens, lengths)
            loss += loss_fn(logits, y).item() * len(y)
            correct += ((logits > 0).float() == y).sum().item()
    return loss / len(samples), correct / len(samples)


for epoch in range(1, 16):
    model.train()
    total = 0.0
    for tokens, lengths, y in batches(train_data, 32, shuffle=True):
        optimizer.zero_grad()
        loss = loss_fn(model(tokens, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(y)
    val_loss, val_acc = evaluate(val_data)
    if epoch % 3 == 0:
        print(f'epoch {epoch}: train loss {total / len(train_data):.4f}  val loss {val_loss:.4f}  val acc {val_acc:.4f}')

print(f'validation accuracy: {evaluate(val_data)[1]:.4f}')
