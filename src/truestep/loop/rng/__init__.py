"""Random numbers.

seed                 one seed for all global generators, their states, and hashed seeds for single samples
stateful_generators  random generators as parts of a checkpoint
deterministic        `deterministic()`: deterministic algorithms of torch, cuDNN and cuBLAS
"""
