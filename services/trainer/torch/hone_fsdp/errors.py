"""Errors after which a group continues: every rank raises the same error, and the call changed nothing."""

import errno

# The errors that fileRefusal() of libs/core waits for.
_PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EIO,
    errno.ENXIO,
    errno.ENODEV,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.EBUSY,
    errno.EMFILE,
    errno.ENFILE,
}


class Refused(Exception):  # noqa: N818  (an outcome that is answered, not a defect)
    """A call that cannot be done; `code` is one of Hone's error codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def bad_input(message: str) -> Refused:
    return Refused("TRAINING_INPUT", message)


def from_os_error(action: str, error: OSError) -> Refused:
    """An error that may pass has its own code, and the trainer waits for it to pass; other file errors have the code CHECKPOINT."""
    code = errno.errorcode[error.errno] if error.errno in _PASSING else "CHECKPOINT"
    return Refused(code, f"the file system cannot {action}: {error}")
