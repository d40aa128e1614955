"""DataLoaders, their batches, worker processes, and the time that a run waits for them."""
