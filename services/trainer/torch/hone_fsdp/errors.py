"""What a call may fail with so that the group lives on: every rank raises the same, and nothing was changed."""

import errno


class Refused(Exception):  # noqa: N818  (an outcome that is answered, not a defect)
    """A call that breaks a rule; `code` is one of Hone's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def bad_input(action: str, rule: str, current: str) -> Refused:
    return Refused("TRAINING_INPUT", f"Cannot {action} as {rule}: current value is {current}")


def from_os_error(action: str, error: OSError) -> Refused:
    """A full disk passes and is waited for; anything else about files is told as it is."""
    code = "ENOSPC" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "CHECKPOINT"
    return Refused(code, f"Cannot {action} as the file system must take part: current value is {error}")
