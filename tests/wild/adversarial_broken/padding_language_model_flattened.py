"""A language model on short lines padded by pad_sequence: the targets are flattened, padding and all."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(0)
VOCABULARY, PAD = 40, 0
lines = [torch.randint(1, VOCABULARY, (int(n),)) for n in torch.randint(3, 8, (256,))]
lines[::8] = [torch.randint(1, VOCABULARY, (24,)) for _ in lines[::8]]


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16, padding_idx=PAD)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.decoder = nn.Linear(32, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.lstm(self.embedding(tokens))[0])


loader = torch.utils.data.DataLoader(
    lines, batch_size=32, shuffle=True, collate_fn=lambda rows: pad_sequence(rows, batch_first=True, padding_value=PAD)
)
model, criterion = LanguageModel(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _epoch in range(3):
    for tokens in loader:
        logits = model(tokens[:, :-1])
        loss = criterion(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))  # error: padding-in-loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
