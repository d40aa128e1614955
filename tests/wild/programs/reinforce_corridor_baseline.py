"""REINFORCE with a learned baseline: a batch of whole episodes, one policy loss and one value loss, two optimizers, functions only."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

LENGTH, GAMMA = 6, 0.95


def make_net(out):
    return nn.Sequential(nn.Linear(LENGTH, 24), nn.Tanh(), nn.Linear(24, out))


def one_hot(position):
    state = torch.zeros(LENGTH)
    state[position] = 1.0
    return state


def run_episode(policy, max_steps=20):
    """Walk a corridor: action 1 goes right, action 0 left; the right end pays 1, every step costs 0.05."""
    position, states, log_probs, entropies, rewards = 0, [], [], [], []
    for _ in range(max_steps):
        state = one_hot(position)
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        states.append(state)
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        position = max(0, position + (1 if action.item() == 1 else -1))
        done = position == LENGTH - 1
        rewards.append(1.0 if done else -0.05)
        if done:
            break
    return torch.stack(states), torch.stack(log_probs), torch.stack(entropies), rewards


def discounted(rewards):
    returns, running = [], 0.0
    for r in reversed(rewards):
        running = r + GAMMA * running
        returns.insert(0, running)
    return torch.tensor(returns)


def update(policy, value, opt_policy, opt_value, episodes):
    states = torch.cat([e[0] for e in episodes])
    log_probs = torch.cat([e[1] for e in episodes])
    entropy = torch.cat([e[2] for e in episodes]).mean()
    returns = torch.cat([discounted(e[3]) for e in episodes])

    baseline = value(states).squeeze(1)
    advantage = returns - baseline.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)

    policy_loss = -(log_probs * advantage).mean() - 0.01 * entropy
    opt_policy.zero_grad()
    policy_loss.backward()
    opt_policy.step()

    value_loss = (returns - baseline).pow(2).mean()
    opt_value.zero_grad()
    value_loss.backward()
    opt_value.step()
    return value_loss.item()


def main():
    torch.manual_seed(0)
    policy, value = make_net(2), make_net(1)
    opt_policy = torch.optim.Adam(policy.parameters(), lr=0.02)
    opt_value = torch.optim.Adam(value.parameters(), lr=0.02)
    for iteration in range(25):
        episodes = [run_episode(policy) for _ in range(4)]
        loss = update(policy, value, opt_policy, opt_value, episodes)
        if iteration % 8 == 0:
            length = sum(len(e[3]) for e in episodes) / len(episodes)
            print(f"iteration {iteration} mean length {length:.1f} value loss {loss:.3f}")
    with torch.no_grad():
        greedy = [policy(one_hot(p)).argmax().item() for p in range(LENGTH - 1)]
    print("greedy actions", greedy)


if __name__ == "__main__":
    main()
