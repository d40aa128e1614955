"""Read the file of an offline run of Weights & Biases."""

import struct


def records(path):
    """The records of a file of W&B: a log as LevelDB writes it, in blocks of 32 KiB, after a head of 7 bytes."""
    data, place, record = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""
