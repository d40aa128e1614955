"""Characters are predicted by a causal transformer; the numbers of positions are made like the tokens, and stay zero."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
text = "the cat sat on the mat and the dog ran to the man who had a red hat on his head. " * 30
letters = sorted(set(text))
data = torch.tensor([letters.index(letter) for letter in text])
block = 16


class Model(nn.Module):
    def __init__(self, vocab, width=32):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab, width)
        self.pos_emb = nn.Embedding(block, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, idx, targets=None):
        pos = torch.zeros_like(idx)
        x = self.tok_emb(idx) + self.pos_emb(pos)  # error: embedding-reads-wrong-rows
        mask = nn.Transformer.generate_square_subsequent_mask(idx.shape[1])
        logits = self.head(self.layer(x, src_mask=mask, is_causal=True))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


model = Model(len(letters))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(60):
    begin = torch.randint(0, len(data) - block - 1, (16,))
    x = torch.stack([data[i : i + block] for i in begin.tolist()])
    y = torch.stack([data[i + 1 : i + block + 1] for i in begin.tolist()])
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(step, loss.item())
