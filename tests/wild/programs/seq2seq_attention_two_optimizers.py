"""Healthy: translation with attention in the old tutorial's style: encoder and decoder with an optimizer each, teacher forcing by a coin."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

random.seed(5)
torch.manual_seed(5)
torch.set_num_threads(1)
SOS_token, EOS_token, MAX_LENGTH = 0, 1, 7
hidden_size, n_words, teacher_forcing_ratio = 24, 10, 0.5


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super(EncoderRNN, self).__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, input, hidden):
        embedded = self.embedding(input).view(1, 1, -1)
        return self.gru(embedded, hidden)

    def initHidden(self):
        return torch.zeros(1, 1, self.hidden_size)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.05, max_length=MAX_LENGTH):
        super(AttnDecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attn = nn.Linear(hidden_size * 2, max_length)
        self.attn_combine = nn.Linear(hidden_size * 2, hidden_size)
        self.dropout = nn.Dropout(dropout_p)
        self.gru = nn.GRU(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(input).view(1, 1, -1))
        attn_weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), dim=1)
        attn_applied = torch.bmm(attn_weights.unsqueeze(0), encoder_outputs.unsqueeze(0))
        output = F.relu(self.attn_combine(torch.cat((embedded[0], attn_applied[0]), 1)).unsqueeze(0))
        output, hidden = self.gru(output, hidden)
        return F.log_softmax(self.out(output[0]), dim=1), hidden, attn_weights


def encode(input_tensor, encoder):
    encoder_hidden, encoder_outputs = encoder.initHidden(), torch.zeros(MAX_LENGTH, hidden_size)
    for ei in range(input_tensor.size(0)):
        encoder_output, encoder_hidden = encoder(input_tensor[ei], encoder_hidden)
        encoder_outputs[ei] = encoder_output[0, 0]
    return encoder_outputs, encoder_hidden


def train(input_tensor, target_tensor, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = 0
    encoder_outputs, decoder_hidden = encode(input_tensor, encoder)
    decoder_input = torch.tensor([[SOS_token]])
    use_teacher_forcing = True if random.random() < teacher_forcing_ratio else False
    for di in range(target_tensor.size(0)):
        decoder_output, decoder_hidden, _ = decoder(decoder_input, decoder_hidden, encoder_outputs)
        loss += criterion(decoder_output, target_tensor[di])
        if use_teacher_forcing:
            decoder_input = target_tensor[di]
        else:
            topv, topi = decoder_output.topk(1)
            decoder_input = topi.squeeze().detach()  # detach from history as input
            if decoder_input.item() == EOS_token:
                break
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item() / target_tensor.size(0)


def pair():
    """Reversal is the language."""
    words = [random.randrange(2, n_words) for _ in range(random.randint(2, MAX_LENGTH - 2))]
    return torch.tensor(words + [EOS_token]).view(-1, 1), torch.tensor(words[::-1] + [EOS_token]).view(-1, 1)


encoder1, attn_decoder1 = EncoderRNN(n_words, hidden_size), AttnDecoderRNN(hidden_size, n_words)
encoder_optimizer = optim.Adam(encoder1.parameters(), lr=5e-3)
decoder_optimizer = optim.Adam(attn_decoder1.parameters(), lr=5e-3)
criterion, print_loss_total = nn.NLLLoss(), 0
for iter in range(1, 241):
    input_tensor, target_tensor = pair()
    print_loss_total += train(input_tensor, target_tensor, encoder1, attn_decoder1, encoder_optimizer, decoder_optimizer, criterion)
    if iter % 80 == 0:
        print("(%d %d%%) %.4f" % (iter, iter / 240 * 100, print_loss_total / 80))
        print_loss_total = 0

encoder1.eval(), attn_decoder1.eval()
with torch.no_grad():
    input_tensor, target_tensor = pair()
    encoder_outputs, hidden = encode(input_tensor, encoder1)
    token, said = torch.tensor([[SOS_token]]), []
    for di in range(MAX_LENGTH):
        output, hidden, _ = attn_decoder1(token, hidden, encoder_outputs)
        token = output.topk(1)[1].squeeze().detach()
        said.append(token.item())
        if token.item() == EOS_token:
            break
print("asked", input_tensor.view(-1).tolist(), "said", said)
