"""
Reads the stream EVENTS by asking for one message after the other, as the user `sinks` of the bus: it may do nothing else there, and a
consumer would need the right to make the server deliver messages.
"""

import base64
import json
import logging
from dataclasses import dataclass
from typing import Any, cast

import nats
from nats.aio.client import Client

from .errors import BusError

_STREAM = "EVENTS"
_DEADLINE_S = 10
_RECONNECT_WAIT_S = 1
_NOT_FOUND = 404
_log = logging.getLogger("hone_sinks.bus")


async def _on_error(error: Exception) -> None:
    """A connection that is away is tried again each second; followers say so, less often."""
    _log.debug("the connection failed: %s", error)


@dataclass(frozen=True)
class StoredMessage:
    """A message of the stream."""

    subject: str
    sequence: int
    data: bytes


class EventsStream:
    """The stream of events. All methods raise BusError when the bus does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def connect(cls, url: str) -> "EventsStream":
        """Connects, and stays connected: a bus that is away is waited for."""
        client = await nats.connect(
            url,
            name="sinks",
            inbox_prefix=b"_INBOX_sinks",
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_WAIT_S,
            error_cb=_on_error,
        )
        return cls(client)

    async def next(self, sequence: int, run: str = "*") -> StoredMessage | None:
        """The first message at or after a position; None if there is none yet."""
        query = {"seq": sequence, "next_by_subj": f"hone.v1.event.{run}.*"}
        answer = await self._ask(f"$JS.API.STREAM.MSG.GET.{_STREAM}", query)
        error = answer.get("error")
        if error is not None:
            if error.get("code") == _NOT_FOUND:
                return None
            raise BusError(f"the bus does not give an event: {error.get('description')}")
        message = answer["message"]
        data = base64.b64decode(message.get("data", ""))
        return StoredMessage(message["subject"], message["seq"], data)

    async def last_sequence(self) -> int:
        """The position of the newest message; 0 for an empty stream."""
        answer = await self._ask(f"$JS.API.STREAM.INFO.{_STREAM}", {})
        if "error" in answer:
            raise BusError(f"the bus does not tell about its events: {answer['error'].get('description')}")
        return int(answer["state"]["last_seq"])

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, subject: str, query: dict[str, Any]) -> dict[str, Any]:
        try:
            reply = await self._client.request(subject, json.dumps(query).encode(), timeout=_DEADLINE_S)
        except (nats.errors.Error, TimeoutError) as error:
            raise BusError(f"the bus does not answer: {error or type(error).__name__}") from error
        return cast(dict[str, Any], json.loads(reply.data))
