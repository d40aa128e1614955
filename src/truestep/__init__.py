"""Own your PyTorch training loop, prove every step."""
__version__ = "0.1.0"
