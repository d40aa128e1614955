"""States of gradients, and the calls that clear, clip and scale them."""
