"""
Reads the record files that W&B and SwanLab write, which are LevelDB's log format behind a header of seven bytes
(https://github.com/google/leveldb/blob/main/doc/log_format.md); the checksums are plain CRC-32.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_FILE_HEADER = 7
_BLOCK = 32_768
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def read_records(file: Path) -> Iterator[bytes]:
    """Yields whole records up to the first that is unfinished or damaged, as a kill leaves it."""
    data = file.read_bytes()
    at = _FILE_HEADER
    record = b""
    while at + _HEADER.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size:
            at += left
            continue
        checksum, length, kind = _HEADER.unpack_from(data, at)
        part = data[at + _HEADER.size : at + _HEADER.size + length]
        if len(part) < length or kind not in (_FULL, _FIRST, _MIDDLE, _LAST):
            return
        if zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
            return
        at += _HEADER.size + length
        record = part if kind in (_FULL, _FIRST) else record + part
        if kind in (_FULL, _LAST):
            yield record
