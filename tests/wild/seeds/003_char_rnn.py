"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Recurrent Neural Networks.

Repaired: the first comment's sign. Expected: nothing.
"""
# io.thecodeforge: ml-ai tutorial

import torch
import torch.nn as nn


class CharRNN(nn.Module):
    def __init__(self, vocab_size, embed_dim=16, hidden_dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_dim)
        self.rnn = nn.RNN(embed_dim, hidden_dim, batch_first=True)
        self.fc = nn.Linear(hidden_dim, vocab_size)

    def forward(self, x, h0=None):
        x = self.embed(x)               # (B, T, E)
        out, h = self.rnn(x, h0)        # out: (B, T, H)
        logits = self.fc(out)           # (B, T, V)
        return logits, h


model = CharRNN(vocab_size=50)
input_seq = torch.randint(0, 50, (2, 10))  # batch=2, seq_len=10
logits, hidden = model(input_seq)
print(logits.shape)  # (2, 10, 50)
