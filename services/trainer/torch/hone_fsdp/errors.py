"""What a call may fail with so that the group lives on: every rank raises the same, and nothing was changed."""

import errno


# As fileRefusal() of libs/core has them.
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
    """A call that breaks a rule; `code` is one of Hone's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def bad_input(action: str, rule: str, current: str) -> Refused:
    return Refused("TRAINING_INPUT", f"Cannot {action} as {rule}: current value is {current}")


def from_os_error(action: str, error: OSError) -> Refused:
    """What may pass is told by its code and waited for; anything else about files is told as it is."""
    code = errno.errorcode[error.errno] if error.errno in _PASSING else "CHECKPOINT"
    return Refused(code, f"Cannot {action} as the file system must take part: current value is {error}")
