"""Advantage actor-critic on a batch of simple pendulum-like environments (vectorised)."""
import torch

torch.manual_seed(0)
N, T, GAMMA, LAM = 32, 32, 0.95, 0.9


def env_reset(n):
    return torch.stack([torch.empty(n).uniform_(-1, 1), torch.zeros(n)], 1)


def env_step(s, a):
    pos, vel = s.unbind(1)
    force = (a.float() - 1) * 0.1
    vel = 0.95 * vel + force
    pos = (pos + 0.2 * vel).clamp(-2, 2)
    return torch.stack([pos, vel], 1), -(pos.abs() + 0.1 * vel.abs())


def layer(n_in, n_out, gain=1.0):
    w = torch.empty(n_in, n_out)
    torch.nn.init.orthogonal_(w, gain)
    return [w.requires_grad_(), torch.zeros(n_out, requires_grad=True)]


trunk, actor, critic = layer(2, 32), layer(32, 3, 0.01), layer(32, 1)
params = trunk + actor + critic


def heads(s):
    h = torch.tanh(s @ trunk[0] + trunk[1])
    return torch.log_softmax(h @ actor[0] + actor[1], -1), (h @ critic[0] + critic[1])[:, 0]


opt = torch.optim.Adam(params, lr=0.01)
state = env_reset(N)
for it in range(61):
    states, actions, rewards, values = [], [], [], []
    with torch.no_grad():
        for t in range(T):
            logp, v = heads(state)
            a = torch.multinomial(logp.exp(), 1)[:, 0]
            states.append(state)
            actions.append(a)
            values.append(v)
            state, r = env_step(state, a)
            rewards.append(r)
        last_value = heads(state)[1]
        adv, gae = [], torch.zeros(N)
        values.append(last_value)
        for t in reversed(range(T)):
            delta = rewards[t] + GAMMA * values[t + 1] - values[t]
            gae = delta + GAMMA * LAM * gae
            adv.append(gae)
        adv = torch.cat(adv[::-1])
        returns = adv + torch.cat(values[:-1])
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    logp, v = heads(torch.cat(states))
    chosen = logp.gather(1, torch.cat(actions)[:, None])[:, 0]
    entropy = -(logp.exp() * logp).sum(1).mean()
    loss = -(chosen * adv).mean() + 0.5 * (v - returns).pow(2).mean() - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 0.5)
    opt.step()
    if it % 15 == 0:
        print(f'iter {it} mean reward {torch.stack(rewards).mean().item():.3f} entropy {entropy.item():.3f}')
    state = env_reset(N)
