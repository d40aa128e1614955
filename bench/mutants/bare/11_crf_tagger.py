import torch

torch.manual_seed(11)
N_TAGS, N_WORDS = 4, 30


def make(n, length=12):
    trans = torch.tensor([[.1, .7, .1, .1], [.1, .1, .7, .1], [.1, .1, .1, .7], [.7, .1, .1, .1]])
    tags = torch.zeros(n, length, dtype=torch.long)
    tags[:, 0] = torch.randint(N_TAGS, (n,))
    for t in range(1, length):
        tags[:, t] = torch.multinomial(trans[tags[:, t - 1]], 1)[:, 0]
    noisy = torch.where(torch.rand(n, length) < 0.35, torch.randint(N_TAGS, (n, length)), tags)
    words = noisy * 7 + torch.randint(7, (n, length))
    return words, tags


class ChainCRF:
    def __init__(self):
        self.emission = torch.zeros(N_WORDS, N_TAGS, requires_grad=True)
        self.transition = torch.zeros(N_TAGS, N_TAGS, requires_grad=True)

    def weights(self):
        return [self.emission, self.transition]

    def nll(self, words, tags):
        e = self.emission[words]
        gold = e.gather(2, tags.unsqueeze(-1)).sum((1, 2)) + self.transition[tags[:, :-1], tags[:, 1:]].sum(1)
        a = e[:, 0]
        for t in range(1, words.shape[1]):
            a = torch.logsumexp(a.unsqueeze(2) + self.transition, 1) + e[:, t]
        return (torch.logsumexp(a, 1) - gold).mean()

    @torch.no_grad()
    def viterbi(self, words):
        e = self.emission[words]
        score, back = e[:, 0], []
        for t in range(1, words.shape[1]):
            best, arg = (score.unsqueeze(2) + self.transition).max(1)
            score = best + e[:, t]
            back.append(arg)
        path = [score.argmax(1)]
        for arg in reversed(back):
            path.append(arg.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1)


train_words, train_tags = make(300)
test_words, test_tags = make(100)
crf = ChainCRF()
for epoch in range(8):
    perm = torch.randperm(300)
    epoch_loss = 0.0
    for k in range(0, 300, 30):
        rows = perm[k:k + 30]
        loss = crf.nll(train_words[rows], train_tags[rows])
        grads = torch.autograd.grad(loss, crf.weights())
        with torch.no_grad():
            for weight, grad in zip(crf.weights(), grads):
                weight.sub_(grad, alpha=0.3)
        epoch_loss += loss.item() / 10
    acc = (crf.viterbi(test_words) == test_tags).float().mean().item()
    print(f'epoch {epoch} nll {epoch_loss:.3f} test tag accuracy {acc:.3f}')
