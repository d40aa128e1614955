#!/usr/bin/env python
# coding: utf-8

# # Which language is a surname from?

# In[1]:


import os
import random
import unicodedata
from glob import glob

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

DATA = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "names", "by_language")
LANGUAGES = ["Arabic", "Chinese", "English", "German", "Italian", "Japanese"]


# In[2]:


def to_ascii(name):
    return "".join(c for c in unicodedata.normalize("NFD", name.lower()) if c.isascii())


rows = []
for label, language in enumerate(LANGUAGES):
    with open(os.path.join(DATA, language + ".txt"), encoding="utf-8") as f:
        names = sorted({to_ascii(line.strip()) for line in f})
    random.shuffle(names)
    rows += [(name, label) for name in names[:400] if name]

random.shuffle(rows)
n_train, n_valid = int(0.7 * len(rows)), int(0.15 * len(rows))
train_rows = rows[:n_train]
valid_rows = rows[n_train : n_train + n_valid]
test_rows = rows[n_train + n_valid :]
len(train_rows), len(valid_rows), len(test_rows)


# In[3]:


chars = sorted({c for name, _ in train_rows for c in name})
stoi = {c: i + 2 for i, c in enumerate(chars)}  # 0 is padding, 1 is unknown
vocab_size = len(chars) + 2


def encode(name):
    return torch.tensor([stoi.get(c, 1) for c in name])


def collate(batch):
    batch = sorted(batch, key=lambda row: len(row[0]), reverse=True)
    sequences = [encode(name) for name, _ in batch]
    lengths = torch.tensor([len(s) for s in sequences])
    labels = torch.tensor([label for _, label in batch])
    return pad_sequence(sequences, batch_first=True), lengths, labels


train_dl = DataLoader(train_rows, batch_size=32, shuffle=True, collate_fn=collate)
valid_dl = DataLoader(valid_rows, batch_size=128, collate_fn=collate)
test_dl = DataLoader(test_rows, batch_size=128, collate_fn=collate)


# In[4]:


class NameClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim=24, hidden_dim=48, n_classes=6):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim, padding_idx=0)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * hidden_dim, n_classes)

    def forward(self, x, lengths):
        embedded = self.dropout(self.embedding(x))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True)
        _, (hidden, _) = self.lstm(packed)
        summary = torch.cat([hidden[-2], hidden[-1]], dim=1)
        return self.fc(self.dropout(summary))


# In[5]:


def macro_f1(targets, predictions):
    scores = []
    for c in range(len(LANGUAGES)):
        tp = np.sum((predictions == c) & (targets == c))
        fp = np.sum((predictions == c) & (targets != c))
        fn = np.sum((predictions != c) & (targets == c))
        scores.append(2 * tp / (2 * tp + fp + fn))
    return np.mean(scores)


@torch.no_grad()
def evaluate(model, dl):
    model.eval()
    losses, predictions, targets = [], [], []
    for x, lengths, y in dl:
        logits = model(x, lengths)
        losses.append(loss_fn(logits, y).item() * len(y))
        predictions.append(logits.argmax(dim=1).numpy())
        targets.append(y.numpy())
    predictions, targets = np.concatenate(predictions), np.concatenate(targets)
    return sum(losses) / len(targets), np.mean(predictions == targets), macro_f1(targets, predictions)


# In[6]:


counts = np.bincount([label for _, label in train_rows], minlength=len(LANGUAGES))
class_weights = torch.tensor(counts.sum() / (len(LANGUAGES) * counts), dtype=torch.float32)

model = NameClassifier(vocab_size)
loss_fn = nn.CrossEntropyLoss(weight=class_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)


# In[7]:


history = {"train": [], "valid": []}
for epoch in tqdm(range(7)):
    model.train()
    epoch_loss, n = 0.0, 0
    for x, lengths, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(model(x, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item() * len(y)
        n += len(y)
    valid_loss, valid_acc, valid_f1 = evaluate(model, valid_dl)
    scheduler.step(valid_loss)
    history["train"].append(epoch_loss / n)
    history["valid"].append(valid_loss)
    print(f"{epoch} train {epoch_loss / n:.4f} valid {valid_loss:.4f} acc {valid_acc:.4f} f1 {valid_f1:.4f}")


# In[8]:


test_loss, test_acc, test_f1 = evaluate(model, test_dl)
print(f"test loss {test_loss:.4f} acc {test_acc:.4f} macro f1 {test_f1:.4f}")


# In[9]:


def predict(name):
    model.eval()
    with torch.no_grad():
        x = encode(to_ascii(name)).unsqueeze(0)
        probabilities = model(x, torch.tensor([x.shape[1]])).softmax(dim=1)[0]
    best = probabilities.argmax().item()
    return LANGUAGES[best], probabilities[best].item()


for name in ["Rossi", "Tanaka", "Schneider", "Haddad"]:
    print(name, *predict(name))
