"""How much to order: REINFORCE with a linear policy for the stock of a small shop.

Many shops are simulated side by side. A shop is closed for good on a random day, so the episodes differ in length;
days after the closing are masked. The reference is the best rule "below s, order up to S".
"""

from collections import namedtuple

import torch

ORDERS, CAPACITY, HORIZON = 9, 24, 40
MEAN_DEMAND = torch.tensor([2.0, 2.0, 2.5, 3.0, 4.0, 7.0, 5.0])
PRICE, UNIT_COST, FIXED_COST, HOLDING, LOST = 4.0, 2.0, 3.0, 0.15, 1.0
CLOSING = 0.02
GAMMA = 0.97

State = namedtuple("State", "stock arriving weekday open")
Episodes = namedtuple("Episodes", "features actions rewards alive")


def reset(n_shops, gen):
    stock = torch.randint(0, 12, (n_shops,), generator=gen).float()
    weekday = torch.randint(0, 7, (n_shops,), generator=gen)
    return State(stock, torch.zeros(n_shops), weekday, torch.ones(n_shops, dtype=torch.bool))


def step(state, order, gen):
    """The order arrives next morning; the shop earns and pays today."""
    demand = torch.poisson(MEAN_DEMAND[state.weekday], generator=gen)
    on_hand = torch.clamp(state.stock + state.arriving, max=CAPACITY)
    sold = torch.minimum(on_hand, demand)
    left = on_hand - sold
    reward = PRICE * sold - UNIT_COST * order - FIXED_COST * (order > 0) - HOLDING * left - LOST * (demand - sold)
    closes = torch.rand(len(left), generator=gen) < CLOSING
    return State(left, order.float(), (state.weekday + 1) % 7, state.open & ~closes), reward


def features_of(state):
    """Stock, expected sales until the next order can help, and the days of the week."""
    position = state.stock + state.arriving
    ahead = MEAN_DEMAND[state.weekday] + MEAN_DEMAND[(state.weekday + 1) % 7]
    gap = (ahead - position) / 10
    days = torch.nn.functional.one_hot(state.weekday, 7).float()
    bends = [torch.relu(gap - x) for x in (-0.6, -0.2, 0.2, 0.6)]
    return torch.cat([torch.stack([torch.ones_like(gap), gap, position / 20, *bends], dim=1), days], dim=1)


def policy_logits(theta, features):
    return features @ theta["policy"]


def values(theta, features):
    return features @ theta["value"]


def roll_out(choose, n_shops, gen):
    state = reset(n_shops, gen)
    features, actions, rewards, alive = [], [], [], []
    for _ in range(HORIZON):
        x = features_of(state)
        action = choose(x, state)
        features.append(x)
        actions.append(action)
        alive.append(state.open)
        state, reward = step(state, action, gen)
        rewards.append(reward)
    return Episodes(*(torch.stack(part) for part in (features, actions, rewards, alive)))


def returns_to_go(rewards, alive):
    """Discounted sums of the rewards that an open shop still gets."""
    total = torch.zeros(rewards.shape[1])
    out = torch.empty_like(rewards)
    for day in reversed(range(len(rewards))):
        total = (rewards[day] + GAMMA * total) * alive[day]
        out[day] = total
    return out


def masked_mean(x, mask):
    return (x * mask).sum() / mask.sum()


def losses(theta, episodes, entropy_weight):
    log_p = torch.log_softmax(policy_logits(theta, episodes.features), dim=-1)
    taken = log_p.gather(-1, episodes.actions.unsqueeze(-1)).squeeze(-1)
    mask = episodes.alive.float()
    target = returns_to_go(episodes.rewards, mask)
    value = values(theta, episodes.features)
    advantage = target - value.detach()
    mean = masked_mean(advantage, mask)
    spread = masked_mean((advantage - mean) ** 2, mask).sqrt()
    advantage = (advantage - mean) / (spread + 1e-6)
    entropy = -(log_p.exp() * log_p).sum(dim=-1)
    policy_loss = -masked_mean(taken * advantage, mask)
    value_loss = masked_mean((value - target) ** 2, mask)
    return policy_loss + 0.01 * value_loss - entropy_weight * masked_mean(entropy, mask), policy_loss, value_loss


def sampled(theta, gen):
    def choose(x, state):
        p = torch.softmax(policy_logits(theta, x), dim=1)
        return torch.multinomial(p, 1, generator=gen).squeeze(1)

    return choose


def greedy(theta):
    return lambda x, state: policy_logits(theta, x).argmax(dim=1)


def reorder(below, level):
    """Order up to `level` once the stock has fallen below `below`."""

    def choose(x, state):
        position = state.stock + state.arriving
        return (torch.where(position < below, level - position, 0.0)).clamp(0, ORDERS - 1).long()

    return choose


@torch.no_grad()
def profit(choose, seed, n_shops=1500):
    """Mean profit of an open day, and of a whole life."""
    episodes = roll_out(choose, n_shops, torch.Generator().manual_seed(seed))
    earned = episodes.rewards * episodes.alive
    return (earned.sum() / episodes.alive.sum()).item(), earned.sum(dim=0).mean().item()


def train(iterations=160, n_shops=64, seed=4):
    gen = torch.Generator().manual_seed(seed)
    n_features = features_of(reset(1, gen)).shape[1]
    theta = {
        "policy": torch.zeros(n_features, ORDERS, requires_grad=True),
        "value": torch.zeros(n_features, requires_grad=True),
    }
    optimizer = torch.optim.Adam(
        [{"params": [theta["policy"]], "lr": 0.05}, {"params": [theta["value"]], "lr": 0.5}], betas=(0.9, 0.99)
    )
    best, kept = -float("inf"), None
    for i in range(iterations):
        with torch.no_grad():
            episodes = roll_out(sampled(theta, gen), n_shops, gen)
        entropy_weight = 0.05 * (1 - i / iterations)
        loss, policy_loss, value_loss = losses(theta, episodes, entropy_weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 19:
            daily, _ = profit(greedy(theta), seed=1000, n_shops=400)
            seen = masked_mean(episodes.rewards, episodes.alive.float()).item()
            print(f"{i + 1:4d} sampled {seen:.3f} greedy {daily:.3f} policy {policy_loss:.4f} value {value_loss:.2f}")
            if daily > best:
                best, kept = daily, {name: p.detach().clone() for name, p in theta.items()}
    return kept, best


def main():
    theta, best = train()
    pairs = [(s, level) for s in range(4, 14, 2) for level in range(s + 2, 21, 3)]
    rule = max(pairs, key=lambda pair: profit(reorder(*pair), seed=1000, n_shops=400)[0])
    print(f"best on the shops for choosing: {best:.4f}; best s and S {rule}")
    for name, choose in (("policy", greedy(theta)), ("s and S", reorder(*rule))):
        daily, whole = profit(choose, seed=2000)
        print(f"test {name:8s} profit of a day {daily:.5f} of a life {whole:.3f}")


if __name__ == "__main__":
    main()
