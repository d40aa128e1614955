"""Padded batches of different lengths that are read right: packed, masked, at the last real step; and a fixed length."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

torch.manual_seed(0)
rows = [torch.randint(1, 20, (int(n),)) for n in torch.randint(4, 25, (120,))]
labels = torch.tensor([int((row < 8).float().mean() > 0.4) for row in rows])


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.read = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.read(packed)
        return self.head(torch.cat([last[0], last[1]], dim=1))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(8, 2)

    def forward(self, tokens, mask):
        states = self.encoder(self.embed(tokens), src_key_padding_mask=mask)
        real = (~mask).unsqueeze(2)
        return self.head((states * real).sum(1) / real.sum(1))


class LastStep(nn.Module):
    """A causal network: the state at the last real token never sees the padding."""

    def __init__(self):
        super().__init__()
        self.embed, self.read, self.head = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, tokens, lengths):
        states, _ = self.read(self.embed(tokens))
        return self.head(states[torch.arange(len(tokens)), lengths - 1])


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.filters, self.head = nn.Conv1d(8, 16, 3, padding=1), nn.Linear(16, 2)

    def forward(self, tokens):
        return self.head(torch.relu(self.filters(self.embed(tokens).transpose(1, 2))).amax(2))


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 8), nn.Linear(24 * 8, 2)

    def forward(self, tokens):
        return self.head(self.embed(tokens).flatten(1))


nets = [Packed(), Masked(), LastStep(), Convolved(), Fixed()]
optimizers = [torch.optim.Adam(net.parameters(), lr=5e-3) for net in nets]
for step in range(25):
    chosen = torch.randperm(120)[:24].tolist()
    tokens = pad_sequence([rows[i] for i in chosen], batch_first=True)
    lengths = torch.tensor([len(rows[i]) for i in chosen])
    whole = torch.zeros(24, 24, dtype=torch.long)
    whole[:, : tokens.shape[1]] = tokens
    given = [(tokens, lengths), (tokens, tokens == 0), (tokens, lengths), (tokens,), (whole,)]
    for net, optimizer, batch in zip(nets, optimizers, given):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(*batch), labels[chosen])
        loss.backward()
        optimizer.step()
print(loss.item())
