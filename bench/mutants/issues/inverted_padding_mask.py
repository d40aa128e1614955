"""Transformer encoder for bag-of-intent classification of short token sequences."""
import torch
from torch import nn

torch.manual_seed(3)
PAD_ID = 0
VOCAB = 60
MAX_LEN = 16
N_CLASSES = 4
D_MODEL = 32


def synthesize(n, gen):
    lengths = torch.randint(4, MAX_LEN, (n,), generator=gen)
    tokens = torch.randint(9, VOCAB, (n, MAX_LEN), generator=gen)
    # tokens 1..8 are keywords; the class is decided by the pair of keywords in the text
    kw_a = torch.randint(1, 5, (n,), generator=gen)
    kw_b = torch.randint(5, 9, (n,), generator=gen)
    pos_a = (torch.rand(n, generator=gen) * (lengths - 1)).long()
    tokens[torch.arange(n), pos_a] = kw_a
    tokens[torch.arange(n), pos_a + 1] = kw_b
    labels = (kw_a + kw_b) % N_CLASSES
    tokens[torch.arange(MAX_LEN)[None, :] >= lengths[:, None]] = PAD_ID
    return tokens, labels


class IntentClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D_MODEL, padding_idx=PAD_ID)
        self.pos = nn.Parameter(torch.randn(1, MAX_LEN, D_MODEL) * 0.02)
        layer = nn.TransformerEncoderLayer(D_MODEL, nhead=4, dim_feedforward=64,
                                           dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(D_MODEL, N_CLASSES)

    def forward(self, tokens):
        is_token = tokens != PAD_ID
        h = self.tok(tokens) + self.pos[:, :tokens.size(1)]
        h = self.encoder(h, src_key_padding_mask=~is_token)
        weights = is_token.unsqueeze(-1).float()
        pooled = (h * weights).sum(1) / weights.sum(1)
        return self.head(pooled)


gen = torch.Generator().manual_seed(3)
x_train, y_train = synthesize(1500, gen)
x_val, y_val = synthesize(400, gen)

model = IntentClassifier()
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
BATCH = 50

for epoch in range(7):
    model.train()
    order = torch.randperm(len(x_train))
    train_loss = 0.0
    for start in range(0, len(order), BATCH):
        idx = order[start:start + BATCH]
        loss = loss_fn(model(x_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        train_loss += loss.item() * len(idx)

    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = loss_fn(logits, y_val).item()
        val_acc = (logits.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}  train {train_loss / len(x_train):.4f}  val {val_loss:.4f}  acc {val_acc:.4f}")
