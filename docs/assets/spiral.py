"""Make the animation of the README from that of the template: `python docs/assets/spiral.py runs/spiral/spiral.gif`."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageSequence

SIZE, COLOURS = (256, 256), 64


def main(drawn: str) -> None:
    """Write spiral.gif beside this file, smaller and with fewer colours."""
    with Image.open(drawn) as film:
        frames = [frame.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS) for frame in ImageSequence.Iterator(film)]
    palette = frames[-1].quantize(COLOURS)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [200] * (len(small) - 1) + [2500]
    target = Path(__file__).with_suffix(".gif")
    small[0].save(target, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
