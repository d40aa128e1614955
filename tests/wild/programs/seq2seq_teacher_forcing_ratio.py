"""GRU encoder-decoder that reverses sequences: teacher forcing decided per batch, two optimizers, greedy decoding in eval mode."""
import random

import torch
import torch.nn as nn
from torch import optim

SOS, EOS, VOCAB, MAX_LENGTH = 0, 1, 12, 6
random.seed(0)
torch.manual_seed(0)


class EncoderRNN(nn.Module):
    def __init__(self, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class DecoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, VOCAB)

    def forward(self, encoder_hidden, target=None):
        batch = encoder_hidden.size(1)
        step_input = torch.full((batch, 1), SOS)
        hidden, outputs = encoder_hidden, []
        for i in range(MAX_LENGTH + 1):
            output, hidden = self.gru(torch.relu(self.embedding(step_input)), hidden)
            output = self.out(output)
            outputs.append(output)
            if target is not None:
                step_input = target[:, i].unsqueeze(1)  # teacher forcing
            else:
                step_input = output.topk(1)[1].squeeze(-1).detach()
        return torch.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden


def make_batch(n):
    source = torch.randint(2, VOCAB, (n, MAX_LENGTH))
    return source, torch.cat([source.flip(1), torch.full((n, 1), EOS)], dim=1)


def train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion, ratio):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    _, hidden = encoder(source)
    outputs, _ = decoder(hidden, target if random.random() < ratio else None)
    loss = criterion(outputs.view(-1, VOCAB), target.view(-1))
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


def evaluate(encoder, decoder, n=100):
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        source, target = make_batch(n)
        decoded = decoder(encoder(source)[1])[0].argmax(-1)
    encoder.train()
    decoder.train()
    return (decoded == target).float().mean().item()


encoder, decoder = EncoderRNN(48), DecoderRNN(48)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=5e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=5e-3)
criterion, running = nn.NLLLoss(), 0.0
for iteration in range(1, 181):
    running += train_step(*make_batch(32), encoder, decoder, encoder_optimizer, decoder_optimizer, criterion, ratio=0.7)
    if iteration % 60 == 0:
        print(f"iteration {iteration} loss {running / 60:.3f} token accuracy {evaluate(encoder, decoder):.3f}")
        running = 0.0
