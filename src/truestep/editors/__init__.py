"""A server for editors, over the Language Server Protocol: findings of `truestep lint` while a file is written.

- `checked`: an open file or notebook with its findings. No protocol.
- `documents`: the open files and notebooks, with places and edits in the units of the protocol.
- `edits`: changes of a file that an editor offers for a finding: the fix, and a comment that allows the rule.
- `server`: the protocol, with pygls.

Needs no torch.
"""
