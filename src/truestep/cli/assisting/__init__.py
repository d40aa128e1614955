"""Commands for coding assistants and editors.

- `mcp`: the server of tools.
- `skills`: the list of skills, and their installation.
- `lsp`: the server for editors.
"""
