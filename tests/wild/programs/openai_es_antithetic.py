"""Evolution strategies without gradients: antithetic noise, rank shaping, weights moved by hand through vector_to_parameters."""
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(4)
torch.set_grad_enabled(False)

x = torch.rand(200, 2) * 4 - 2
y = ((x ** 2).sum(1) < 1.8).float()
x_test = torch.rand(200, 2) * 4 - 2
y_test = ((x_test ** 2).sum(1) < 1.8).float()
policy = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def fitness(vector):
    vector_to_parameters(vector, policy.parameters())
    logits = policy(x).squeeze(1)
    return -torch.nn.functional.binary_cross_entropy_with_logits(logits, y).item()


def ranks(values):
    order = torch.tensor(values).argsort().argsort().float()
    return order / (len(values) - 1) - 0.5


theta, velocity = parameters_to_vector(policy.parameters()).clone(), 0.0
population, sigma, rate = 12, 0.15, 0.4
for generation in range(60):
    noise = torch.randn(population, theta.numel())
    scores = [fitness(theta + sigma * e) for e in noise] + [fitness(theta - sigma * e) for e in noise]
    shaped = ranks(scores)
    gradient = ((shaped[:population] - shaped[population:]) @ noise) / (population * sigma)
    velocity = 0.8 * velocity + rate * gradient * sigma
    theta = theta + velocity
    if generation % 20 == 0:
        print(f"generation {generation} fitness {max(scores):.4f}")

vector_to_parameters(theta, policy.parameters())
accuracy = ((policy(x_test).squeeze(1) > 0).float() == y_test).float().mean()
print(f"test accuracy {accuracy:.3f}")
