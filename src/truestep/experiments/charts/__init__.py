"""Charts of losses.

curve: as text for a terminal
picture: as SVG
"""
