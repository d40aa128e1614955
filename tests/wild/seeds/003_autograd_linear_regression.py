"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Autograd: gradient descent by hand.

Repaired: nothing. Expected: nothing (parameters moved by hand under no_grad are healthy). The bias hardly moves, because
the inputs are raw square feet; the document says so.
"""
import torch

torch.manual_seed(42)

# --- Toy linear regression: predict house price from size ---
house_sizes  = torch.tensor([750.0, 1200.0, 1800.0, 2400.0])
house_prices = torch.tensor([140.0, 221.0, 329.0, 437.0])

# Learnable parameters
weight = torch.tensor([0.01], requires_grad=True)  # terrible initial guess, intentionally
bias   = torch.tensor([0.01], requires_grad=True)

learning_rate = 1e-7

for epoch in range(6):
    # FORWARD PASS
    predicted_prices = weight * house_sizes + bias

    # COMPUTE LOSS: Mean Squared Error
    loss = ((predicted_prices - house_prices) ** 2).mean()

    # ZERO GRADIENTS: must do this before backward()
    if weight.grad is not None:
        weight.grad.zero_()
        bias.grad.zero_()

    # BACKWARD PASS
    loss.backward()

    # PARAMETER UPDATE
    with torch.no_grad():
        weight -= learning_rate * weight.grad
        bias   -= learning_rate * bias.grad

    print(f"Epoch {epoch+1:2d} | Loss: {loss.item():.2f} | "
          f"weight: {weight.item():.5f} | bias: {bias.item():.5f} | "
          f"grad_w: {weight.grad.item():.4f}")

print("\nFinal model: price =", round(weight.item(), 4), "* size +", round(bias.item(), 4))
print("Target model:  price = 0.18 * size + 5")

with torch.inference_mode():
    test_size = torch.tensor([2000.0])
    predicted = weight * test_size + bias
    print(f"\nPredicted price for 2000 sq ft: ${predicted.item():.1f}k")
