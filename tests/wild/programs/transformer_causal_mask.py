"""Healthy: nn.Transformer layers with a causal mask built in forward, positional encoding as a buffer, batch_first off."""
import math

import torch
from torch import Tensor, nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout):
        super().__init__()
        self.d_model = d_model
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        encoder_layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers, enable_nested_tensor=False)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor) -> Tensor:
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        return self.linear(self.transformer_encoder(src, src_mask, is_causal=True))


def counting_sequences(n, length=24, ntoken=20):
    """Arithmetic progressions modulo the vocabulary."""
    start = torch.randint(0, ntoken, (n, 1))
    stride = torch.randint(1, 6, (n, 1))
    noise = (torch.rand(n, length) < 0.03).long() * torch.randint(0, ntoken, (n, length))
    return ((start + stride * torch.arange(length) + noise) % ntoken).t()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ntokens = 20
    train_data, val_data = counting_sequences(640), counting_sequences(128)
    model = TransformerModel(ntokens, 32, 2, 64, 2, 0.1)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.8)

    def evaluate():
        model.eval()
        with torch.no_grad():
            out = model(val_data[:-1])
            return criterion(out.reshape(-1, ntokens), val_data[1:].reshape(-1)).item()

    for epoch in range(1, 5):
        model.train()
        for idx in torch.randperm(640).split(32):
            data, targets = train_data[:-1, idx], train_data[1:, idx].reshape(-1)
            loss = criterion(model(data).view(-1, ntokens), targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        val_loss = evaluate()
        print(f"| end of epoch {epoch:3d} | valid loss {val_loss:5.2f} | valid ppl {math.exp(val_loss):8.2f}")
        scheduler.step()


if __name__ == "__main__":
    main()
