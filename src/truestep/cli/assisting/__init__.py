"""Commands for coding assistants.

- `mcp`: the server of tools.
- `skills`: the list of skills, and their installation.
"""
