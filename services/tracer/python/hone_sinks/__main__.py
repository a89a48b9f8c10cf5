"""Starts a follower for each system, and ends them when the process is told to stop."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from .bus import EventsStream
from .errors import SettingError
from .follower import Follower
from .settings import Settings, process_environment, read_settings

# The chart's probes look at the time of this file: it is touched while the event loop turns.
ALIVE = "alive"
_TOUCH_EVERY_S = 5


async def _touch(file: Path) -> None:
    while True:
        file.touch()
        await asyncio.sleep(_TOUCH_EVERY_S)


async def follow(settings: Settings) -> None:
    """Writes until SIGTERM or SIGINT."""
    stream = await EventsStream.connect(settings.nats_url)
    settings.folder.mkdir(parents=True, exist_ok=True)
    touching = asyncio.create_task(_touch(settings.folder / ALIVE))
    followers = [Follower(name, settings.folder, settings.project, stream) for name in settings.backends]
    tasks = [asyncio.create_task(follower.run()) for follower in followers]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: [task.cancel() for task in tasks])
    done = await asyncio.gather(*tasks, return_exceptions=True)
    touching.cancel()
    await stream.close()
    for result in done:
        if isinstance(result, Exception):
            raise result


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = read_settings(process_environment())
    except SettingError as error:
        print(error, file=sys.stderr)
        return 78  # EX_CONFIG: no restart helps
    asyncio.run(follow(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
