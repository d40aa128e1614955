"""Files and state dicts: saved and loaded."""
