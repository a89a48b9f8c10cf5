"""What a follower remembers over a restart (S4): a small file, written anew as a whole."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Position:
    """The next event, and the runs that have not ended by their identity in the system."""

    file: Path
    next: int = 1
    open: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> "Position":
        """A file that is missing, as at the first start, means the beginning of the stream; nothing is doubled by that (S3)."""
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls(file)
        return cls(file, int(found["next"]), dict(found["open"]))

    def save(self) -> None:
        part = self.file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as out:
            json.dump({"next": self.next, "open": self.open}, out)
            out.flush()
            os.fsync(out.fileno())
        part.replace(self.file)
