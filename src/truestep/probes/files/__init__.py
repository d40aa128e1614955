"""Files and state dicts: saved and loaded; exported models: saved."""
