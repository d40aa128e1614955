"""Word-level LSTM language model by truncated backpropagation: columns of a batchified text, state detached per chunk, rate annealed on plateaus."""
import math

import torch
import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=32, nhid=32, nlayers=1, dropout=0.2):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return self.decoder(self.drop(output)).view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[:nbatch * bsz].view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Wrap hidden states in new tensors, to detach them from their history."""
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def evaluate(model, criterion, source, bptt):
    model.eval()
    total_loss, hidden = 0.0, model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            data, targets = get_batch(source, i, bptt)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(source) - 1)


def train(model, criterion, source, bptt, lr):
    model.train()
    hidden = model.init_hidden(source.size(1))
    for i in range(0, source.size(0) - 1, bptt):
        data, targets = get_batch(source, i, bptt)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)


def corpus(n, g):
    """A text of sentences: subject, verb, object, full stop; words of one topic stay together."""
    topics = torch.randint(0, 4, (n // 4,), generator=g)
    words = torch.randint(0, 3, (n // 4, 3), generator=g)
    sentence = topics[:, None] * 9 + torch.tensor([0, 3, 6]) + words
    return torch.cat([sentence, torch.full((len(topics), 1), 36)], dim=1).flatten()


torch.manual_seed(1111)
g = torch.Generator().manual_seed(1)
train_data, val_data, test_data = batchify(corpus(8000, g), 20), batchify(corpus(1200, g), 10), batchify(corpus(1200, g), 10)
model, criterion = RNNModel(37), nn.CrossEntropyLoss()
lr, best_val_loss, best = 5.0, None, None
for epoch in range(1, 5):
    train(model, criterion, train_data, 20, lr)
    val_loss = evaluate(model, criterion, val_data, 20)
    print(f"end of epoch {epoch} valid loss {val_loss:.3f} valid ppl {math.exp(val_loss):.2f}")
    if not best_val_loss or val_loss < best_val_loss:
        best, best_val_loss = {k: v.clone() for k, v in model.state_dict().items()}, val_loss
    else:
        lr /= 4.0
model.load_state_dict(best)
print(f"test ppl {math.exp(evaluate(model, criterion, test_data, 20)):.2f}")
