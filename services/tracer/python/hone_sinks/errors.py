"""Errors of the sinks."""


class SinkError(Exception):
    """A root for all errors that people may see; its text is a whole sentence."""


class SettingError(SinkError):
    """A setting is missing or wrong, so that no restart helps."""


class BusError(SinkError):
    """The bus answered with an error, or not at all."""


class WorkerError(SinkError):
    """A system did not take something; it is tried again."""
