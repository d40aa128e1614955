"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", sections Audience and Prerequisites: two checks that end the program.

Repaired: the signs of the comments; the two listings in one file, the second one's exit alone kept at the end.
Expected: nothing, and the exit code 0 of `sys.exit`.
"""
# io.thecodeforge: ml-ai tutorial
# Confirm audience fit
import sys


def is_target_audience():
    try:
        import torch
        # Real engineers check tensor stability, not just import
        t = torch.tensor([1.0], device='cpu')
        assert t.item() == 1.0
        return True
    except:
        return False


if __name__ == '__main__':
    audience = is_target_audience()
    print(f'You belong here: {audience}')

# Verify prerequisites
import torch


def check_env():
    needed = {'python': lambda: sys.version_info >= (3, 6),
              'torch': lambda: hasattr(torch, '__version__'),
              'cuda': lambda: torch.cuda.is_available() or True}
    for name, check in needed.items():
        assert check(), f'Missing: {name}'
    return True


if __name__ == '__main__':
    check_env()
    print(f'Environment OK: PyTorch {torch.__version__}')
    sys.exit(0)
