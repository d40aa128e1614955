"""Reviews of different lengths, packed for a recurrent layer; the last column of its padded output is read."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(8)
LENGTHS = torch.randint(4, 19, (240,)).tolist()
REVIEWS = [torch.randint(1, 40, (length,)) for length in LENGTHS]
LABELS = torch.tensor([float((review < 12).sum() > 3) for review in REVIEWS])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 16, padding_idx=0)
        self.rnn = nn.GRU(16, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, enforce_sorted=False, batch_first=True)
        states, lengths = pad_packed_sequence(self.rnn(packed)[0])
        last = states[-1]  # error: input-without-influence
        return self.head(last).squeeze(1)


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(5):
    for chosen in torch.randperm(240).split(24):
        reviews = [REVIEWS[i] for i in chosen.tolist()]
        tokens = pad_sequence(reviews, batch_first=True)
        scores = model(tokens, torch.tensor([len(review) for review in reviews]))
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(scores, LABELS[chosen]).backward()
        optimizer.step()
