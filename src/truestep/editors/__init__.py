"""A server for editors, over the Language Server Protocol: findings of `truestep lint` while a file is written.

- `checked`: an open file with its findings. No protocol.
- `edits`: changes of a file that an editor offers for a finding: the fix, and a comment that allows the rule.
- `server`: the protocol, with pygls.

Needs no torch.
"""
