"""DPO after supervised fine-tuning: policy and deep-copied frozen reference in eval mode, sums of token log-probabilities, masked prompts."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, PROMPT, ANSWER = 16, 4, 5


class Policy(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def token_logps(model, ids, mask):
    logits = model(ids[:, :-1])
    logps = logits.log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(2)
    return (logps * mask[:, 1:]).sum(1)


def dpo_loss(policy, reference, chosen, rejected, mask, beta=0.2):
    both = torch.cat([chosen, rejected])
    masks = torch.cat([mask, mask])
    pi_chosen, pi_rejected = token_logps(policy, both, masks).chunk(2)
    with torch.no_grad():
        ref_chosen, ref_rejected = token_logps(reference, both, masks).chunk(2)
    reward_chosen = beta * (pi_chosen - ref_chosen)
    reward_rejected = beta * (pi_rejected - ref_rejected)
    loss = -F.logsigmoid(reward_chosen - reward_rejected).mean()
    return loss, (reward_chosen > reward_rejected).float().mean()


def demonstrations(n):
    prompt = torch.randint(1, VOCAB, (n, PROMPT))
    shift = torch.randint(0, 2, (n, 1))  # two ways to answer: repeat, or count on
    answer = (prompt[:, -1:] + torch.arange(1, ANSWER + 1) * shift) % VOCAB
    return torch.cat([prompt, answer], 1)


def preferences(n):
    prompt = torch.randint(1, VOCAB, (n, PROMPT))
    counting = (prompt[:, -1:] + torch.arange(1, ANSWER + 1)) % VOCAB
    repeating = prompt[:, -1:].expand(n, ANSWER)
    return torch.cat([prompt, counting], 1), torch.cat([prompt, repeating], 1)


def main():
    torch.manual_seed(31)
    mask = torch.cat([torch.zeros(PROMPT), torch.ones(ANSWER)])
    policy = Policy()
    sft = torch.optim.AdamW(policy.parameters(), lr=5e-3)
    for step in range(150):
        ids = demonstrations(48)
        logits = policy(ids[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        loss = (loss * mask[1:]).sum() / (len(ids) * ANSWER)
        sft.zero_grad()
        loss.backward()
        sft.step()
    print(f"supervised loss {loss.item():.3f}")

    reference = copy.deepcopy(policy)
    reference.eval()
    for p in reference.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    for step in range(80):
        chosen, rejected = preferences(32)
        loss, accuracy = dpo_loss(policy, reference, chosen, rejected, mask.expand(32, -1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        warm.step()
        if step % 40 == 0:
            print(f"step {step} dpo {loss.item():.4f} accuracy {accuracy.item():.2f}")
    policy.eval()
    with torch.no_grad():
        loss, accuracy = dpo_loss(policy, reference, *preferences(200), mask.expand(200, -1))
    print(f"held out: dpo {loss.item():.4f} accuracy {accuracy.item():.3f}")


main()
