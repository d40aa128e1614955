"""Healthy: direct preference optimisation: a policy trained by maximum likelihood first, its frozen copy as the reference, log-ratios."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
VOCABULARY, LENGTH, PROMPT = 12, 10, 3


class TinyLM(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(VOCABULARY, d), nn.GRU(d, d, batch_first=True), nn.Linear(d, VOCABULARY)

    def forward(self, input_ids):
        return self.head(self.gru(self.embedding(input_ids))[0])

    @torch.no_grad()
    def generate(self, ids, n):
        for _ in range(n):
            ids = torch.cat([ids, torch.multinomial(self(ids)[:, -1].softmax(-1), 1)], 1)
        return ids


def get_batch_logps(logits, labels, loss_mask):
    per_token = torch.gather(logits[:, :-1].log_softmax(-1), 2, labels[:, 1:].unsqueeze(2)).squeeze(2)
    return (per_token * loss_mask[:, 1:]).sum(-1)


def dpo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, beta=0.3):
    logits = (policy_chosen - policy_rejected) - (reference_chosen - reference_rejected)
    losses = -F.logsigmoid(beta * logits)
    chosen_rewards = beta * (policy_chosen - reference_chosen).detach()
    rejected_rewards = beta * (policy_rejected - reference_rejected).detach()
    return losses.mean(), (chosen_rewards > rejected_rewards).float().mean()


def reward(ids):
    """Even tokens please."""
    return (ids[:, PROMPT:] % 2 == 0).float().mean(1)


policy = TinyLM()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
for step in range(60):
    ids = (torch.randint(0, VOCABULARY, (48, 1)) + torch.randint(1, 3, (48, LENGTH)).cumsum(1)) % VOCABULARY
    loss = F.cross_entropy(policy(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"supervised: loss {loss.item():.3f}, reward {reward(policy.generate(torch.randint(0, VOCABULARY, (200, PROMPT)), 7)).mean():.3f}")

reference = copy.deepcopy(policy)
for p in reference.parameters():
    p.requires_grad = False
reference.eval()
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda step: min(1.0, (step + 1) / 10))
mask = torch.cat([torch.zeros(64, PROMPT), torch.ones(64, LENGTH - PROMPT)], 1)
for step in range(60):
    policy.eval()
    prompts = torch.randint(0, VOCABULARY, (32, PROMPT))
    a, b = reference.generate(prompts, LENGTH - PROMPT), reference.generate(prompts, LENGTH - PROMPT)
    better = (reward(a) >= reward(b))[:, None]
    batch = torch.cat([torch.where(better, a, b), torch.where(better, b, a)])
    policy.train()
    chosen, rejected = get_batch_logps(policy(batch), batch, mask).chunk(2)
    with torch.no_grad():
        reference_chosen, reference_rejected = get_batch_logps(reference(batch), batch, mask).chunk(2)
    loss, accuracy = dpo_loss(chosen, rejected, reference_chosen, reference_rejected)
    optimizer.zero_grad()
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(policy.parameters(), 10.0).item()
    optimizer.step()
    scheduler.step()
policy.eval()
print(f"preferences: loss {loss.item():.3f}, reward {reward(policy.generate(torch.randint(0, VOCABULARY, (200, PROMPT)), 7)).mean():.3f}")
