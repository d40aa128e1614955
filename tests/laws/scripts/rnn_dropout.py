import torch
from _state import tell
from torch import nn

torch.manual_seed(9)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.LSTM(8, 16, num_layers=2, dropout=0.4, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(32, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens, lengths, state):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        for t in range(out.shape[1]):
            state = self.cell(out[:, t], state)
        return self.head(state), state


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
state = torch.zeros(6, 8)
for step in range(15):
    lengths = torch.randint(2, 7, (6,))
    tokens = torch.randint(1, 20, (6, 7))
    optimizer.zero_grad()
    out, state = model(tokens, lengths, state.detach())
    loss = nn.functional.cross_entropy(out, torch.randint(0, 5, (6,)))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(step, repr(loss.item()))
tell(model, optimizer)
