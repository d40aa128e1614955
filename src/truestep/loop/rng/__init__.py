"""Random numbers: seeds, states of generators, deterministic algorithms."""
