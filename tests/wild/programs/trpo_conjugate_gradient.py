"""Healthy: TRPO: Hessian-vector products through a double backward, conjugate gradients, a line search that writes the weights; LBFGS for values."""
import numpy as np
import torch
import torch.nn as nn
from scipy import optimize
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.set_default_dtype(torch.float64)
torch.manual_seed(543)
torch.set_num_threads(1)


class Policy(nn.Module):
    def __init__(self, num_inputs, num_outputs):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(num_inputs, 16)
        self.action_mean = nn.Linear(16, num_outputs)
        self.action_mean.weight.data.mul_(0.1)
        self.action_mean.bias.data.mul_(0.0)
        self.action_log_std = nn.Parameter(torch.zeros(1, num_outputs) - 0.5)

    def forward(self, x):
        mean = self.action_mean(torch.tanh(self.affine1(x)))
        return mean, self.action_log_std.expand_as(mean)


def log_density(x, mean, log_std):
    return (-(x - mean).pow(2) / (2 * torch.exp(2 * log_std)) - log_std).sum(1, keepdim=True)


def conjugate_gradients(Avp, b, nsteps=10, tol=1e-10):
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    rdotr = torch.dot(r, r)
    for _ in range(nsteps):
        _Avp = Avp(p)
        alpha = rdotr / torch.dot(p, _Avp)
        x += alpha * p
        r -= alpha * _Avp
        new = torch.dot(r, r)
        p, rdotr = r + new / rdotr * p, new
        if rdotr < tol:
            break
    return x


def linesearch(model, f, x, fullstep, expected_improve_rate):
    fval = f().data
    for stepfrac in 0.5 ** np.arange(10):
        vector_to_parameters(x + stepfrac * fullstep, model.parameters())
        improve = fval - f().data
        if improve.item() > 0 and improve.item() / (expected_improve_rate * stepfrac).item() > 0.1:
            return True
    vector_to_parameters(x, model.parameters())
    return False


def trpo_step(model, get_loss, get_kl, max_kl=0.02, damping=0.1):
    loss_grad = torch.cat([g.view(-1) for g in torch.autograd.grad(get_loss(), model.parameters())]).data

    def Fvp(v):
        grads = torch.autograd.grad(get_kl().mean(), model.parameters(), create_graph=True)
        kl_v = (torch.cat([g.view(-1) for g in grads]) * v).sum()
        return torch.cat([g.contiguous().view(-1) for g in torch.autograd.grad(kl_v, model.parameters())]).data + v * damping

    stepdir = conjugate_gradients(Fvp, -loss_grad)
    lm = torch.sqrt(0.5 * (stepdir * Fvp(stepdir)).sum() / max_kl)
    with torch.no_grad():
        return linesearch(model, get_loss, parameters_to_vector(model.parameters()).clone(), stepdir / lm, (-loss_grad * stepdir).sum() / lm)


policy_net = Policy(2, 1)
value_net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
accepted, history = 0, []
for i_episode in range(12):
    x, states, actions, rewards = 2 * torch.rand(24, 2) - 1, [], [], []
    for t in range(10):
        with torch.no_grad():
            mean, log_std = policy_net(x)
            action = torch.normal(mean, log_std.exp())
        states.append(x)
        actions.append(action)
        x = (x + 0.3 * torch.cat([action, 0.3 * x[:, :1]], 1)).clamp(-2, 2)
        rewards.append(-x.pow(2).sum(1, keepdim=True))
    history.append(torch.stack(rewards).sum(0).mean().item())
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0).flatten(0, 1)
    states, actions = torch.cat(states), torch.cat(actions)

    def get_value_loss(flat_params):
        vector_to_parameters(torch.tensor(flat_params), value_net.parameters())
        for param in value_net.parameters():
            if param.grad is not None:
                param.grad.data.fill_(0)
        value_loss = (value_net(states) - returns).pow(2).mean()
        for param in value_net.parameters():
            value_loss += param.pow(2).sum() * 1e-3
        value_loss.backward()
        return value_loss.data.numpy(), parameters_to_vector(p.grad for p in value_net.parameters()).data.numpy()

    start = parameters_to_vector(value_net.parameters()).detach().numpy()
    flat_params, _, _ = optimize.fmin_l_bfgs_b(get_value_loss, start, maxiter=15)
    vector_to_parameters(torch.tensor(flat_params), value_net.parameters())

    with torch.no_grad():
        advantages = returns - value_net(states)
        advantages = (advantages - advantages.mean()) / advantages.std()
        fixed_mean, fixed_log_std = policy_net(states)
        fixed_log_prob = log_density(actions, fixed_mean, fixed_log_std)

    def get_loss():
        mean, log_std = policy_net(states)
        return -(advantages * torch.exp(log_density(actions, mean, log_std) - fixed_log_prob)).mean()

    def get_kl():
        mean1, log_std1 = policy_net(states)
        mean0, log_std0 = mean1.data, log_std1.data
        kl = log_std1 - log_std0 + (log_std0.exp().pow(2) + (mean0 - mean1).pow(2)) / (2.0 * log_std1.exp().pow(2)) - 0.5
        return kl.sum(1, keepdim=True)

    accepted += trpo_step(policy_net, get_loss, get_kl)
print("return {:.3f} -> {:.3f}, {} of 12 steps accepted".format(history[0], history[-1], accepted))
