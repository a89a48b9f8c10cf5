"""The settings, from the environment. Where figures go is the operator's decision; run files cannot name it."""

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import SettingError

BACKENDS = ("wandb", "swanlab", "trackio")


@dataclass(frozen=True)
class Settings:
    """Resolved settings."""

    nats_url: str
    """Address of the bus with user and password."""
    backends: tuple[str, ...]
    """Names of the systems to write to."""
    folder: Path
    """Where positions and what the packages keep lie; it must outlive a restart."""
    project: str
    """Name of the project in each system."""


def read_settings(environment: dict[str, str]) -> Settings:
    """Raises SettingError for the first setting that is wrong."""
    names = tuple(name.strip() for name in environment.get("HONE_SINKS", "").split(",") if name.strip())
    if not names:
        raise SettingError(f"HONE_SINKS must name the systems to write to, of {', '.join(BACKENDS)}")
    for name in names:
        if name not in BACKENDS:
            raise SettingError(f'HONE_SINKS names "{name}"; allowed are {", ".join(BACKENDS)}')
    return Settings(
        nats_url=_secret(environment, "HONE_NATS_URL"),
        backends=names,
        folder=Path(environment.get("HONE_SINKS_DIR") or ".hone/sinks").resolve(),
        project=environment.get("HONE_SINKS_PROJECT") or "hone",
    )


def _secret(environment: dict[str, str], name: str) -> str:
    """The value of NAME, or the text of the file that NAME_FILE names."""
    value = environment.get(name)
    file = environment.get(f"{name}_FILE")
    if not value and file:
        try:
            value = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SettingError(f"{name}_FILE must be a readable file: {error.strerror}") from error
    if not value:
        raise SettingError(f"{name} or {name}_FILE must be set")
    return value


def process_environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)
