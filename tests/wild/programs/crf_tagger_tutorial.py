"""Healthy: BiLSTM-CRF tutorial style: one sentence at a time, the loss is a method of the model, Viterbi decoding before and after."""
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(1)
torch.set_num_threads(1)
START_TAG, STOP_TAG = "<START>", "<STOP>"


def prepare_sequence(seq, to_ix):
    return torch.tensor([to_ix[w] for w in seq], dtype=torch.long)


def log_sum_exp(vec):
    max_score = vec[0, torch.argmax(vec, 1).item()]
    return max_score + torch.log(torch.sum(torch.exp(vec - max_score)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab_size, tag_to_ix, embedding_dim, hidden_dim):
        super(BiLSTM_CRF, self).__init__()
        self.hidden_dim, self.tag_to_ix, self.tagset_size = hidden_dim, tag_to_ix, len(tag_to_ix)
        self.word_embeds = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim // 2, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(hidden_dim, self.tagset_size)
        self.transitions = nn.Parameter(torch.randn(self.tagset_size, self.tagset_size))
        self.transitions.data[tag_to_ix[START_TAG], :] = -10000
        self.transitions.data[:, tag_to_ix[STOP_TAG]] = -10000

    def init_hidden(self):
        return torch.randn(2, 1, self.hidden_dim // 2), torch.randn(2, 1, self.hidden_dim // 2)

    def _forward_alg(self, feats):
        forward_var = torch.full((1, self.tagset_size), -10000.0)
        forward_var[0][self.tag_to_ix[START_TAG]] = 0.0
        for feat in feats:
            scores = forward_var + self.transitions + feat.view(-1, 1)
            forward_var = torch.cat([log_sum_exp(row[None]).view(1) for row in scores]).view(1, -1)
        return log_sum_exp(forward_var + self.transitions[self.tag_to_ix[STOP_TAG]])

    def _get_lstm_features(self, sentence):
        self.hidden = self.init_hidden()
        embeds = self.word_embeds(sentence).view(len(sentence), 1, -1)
        lstm_out, self.hidden = self.lstm(embeds, self.hidden)
        return self.hidden2tag(lstm_out.view(len(sentence), self.hidden_dim))

    def _score_sentence(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([self.tag_to_ix[START_TAG]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[self.tag_to_ix[STOP_TAG], tags[-1]]

    def _viterbi_decode(self, feats):
        backpointers, forward_var = [], torch.full((1, self.tagset_size), -10000.0)
        forward_var[0][self.tag_to_ix[START_TAG]] = 0
        for feat in feats:
            best, pointers = (forward_var + self.transitions).max(1)
            forward_var = (best + feat).view(1, -1)
            backpointers.append(pointers.tolist())
        terminal_var = forward_var + self.transitions[self.tag_to_ix[STOP_TAG]]
        best_tag_id = terminal_var.argmax(1).item()
        path_score, best_path = terminal_var[0][best_tag_id], [best_tag_id]
        for pointers in reversed(backpointers):
            best_tag_id = pointers[best_tag_id]
            best_path.append(best_tag_id)
        assert best_path.pop() == self.tag_to_ix[START_TAG]
        return path_score, best_path[::-1]

    def neg_log_likelihood(self, sentence, tags):
        feats = self._get_lstm_features(sentence)
        return self._forward_alg(feats) - self._score_sentence(feats, tags)

    def forward(self, sentence):  # dont confuse this with _forward_alg above.
        return self._viterbi_decode(self._get_lstm_features(sentence))


training_data = [(
    "the wall street journal reported today that apple corporation made money".split(), "B I I I O O O B I O O".split()
), ("georgia tech is a university in georgia".split(), "B I O O O O B".split())]
word_to_ix = {}
for sentence, tags in training_data:
    for word in sentence:
        if word not in word_to_ix:
            word_to_ix[word] = len(word_to_ix)
tag_to_ix = {"B": 0, "I": 1, "O": 2, START_TAG: 3, STOP_TAG: 4}

model = BiLSTM_CRF(len(word_to_ix), tag_to_ix, 5, 4)
optimizer = optim.SGD(model.parameters(), lr=0.03, weight_decay=1e-4)

# Check predictions before training
with torch.no_grad():
    precheck_sent = prepare_sequence(training_data[0][0], word_to_ix)
    print("before:", model(precheck_sent)[1])

for epoch in range(50):
    for sentence, tags in training_data:
        # Remember that Pytorch accumulates gradients
        model.zero_grad()
        sentence_in = prepare_sequence(sentence, word_to_ix)
        targets = torch.tensor([tag_to_ix[t] for t in tags], dtype=torch.long)
        loss = model.neg_log_likelihood(sentence_in, targets)
        loss.backward()
        optimizer.step()

# Check predictions after training
with torch.no_grad():
    print("after:", model(prepare_sequence(training_data[0][0], word_to_ix))[1], "loss %.3f" % loss.item())
