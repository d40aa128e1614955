"""Series of losses as characters for a terminal, and as SVG."""
