"""Healthy: word language model with truncated BPTT: the hidden state is carried and detached; corpus read in order."""
import math

import torch
import torch.nn as nn

torch.manual_seed(1111)
torch.set_num_threads(1)


class RNNModel(nn.Module):
    """Container module with an encoder, a recurrent module, and a decoder."""

    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers = nhid, nlayers
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(self.drop(output)), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def markov_corpus(n, ntoken, seed):
    g = torch.Generator().manual_seed(99)
    nxt = torch.randint(0, ntoken, (ntoken, 2), generator=g)
    pick = torch.rand(n, generator=torch.Generator().manual_seed(seed)).lt(0.8).long().tolist()
    ids, cur = [], 0
    for c in pick:
        cur = nxt[cur, c].item() if cur % 7 else (cur + c + 1) % ntoken
        ids.append(cur)
    return torch.tensor(ids)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


bptt, bsz, ntokens, clip = 16, 16, 40, 0.25
train_data = batchify(markov_corpus(6000, ntokens, 1), bsz)
val_data = batchify(markov_corpus(1500, ntokens, 2), bsz)
criterion = nn.CrossEntropyLoss()
model = RNNModel(ntokens, 32, 48, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len]


def evaluate(source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(bsz)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output.flatten(0, 1), targets.flatten()).item()
    return total_loss / (len(source) - 1)


for epoch in range(1, 4):
    model.train()
    hidden = model.init_hidden(bsz)
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    val_loss = evaluate(val_data)
    print("| end of epoch {:3d} | valid loss {:5.2f} | valid ppl {:8.2f}".format(epoch, val_loss, math.exp(val_loss)))
