"""Runs in the interpreter of an answer that is a program: executes it on each input and reports its output. Nothing in here
is trusted, as the program can change all of it; the expected output is compared in another process."""

import builtins
import io
import json
import os
import sys
import types

_INPUT, _OUTPUT = "/tmp/input", "/tmp/output"
_open, _read, _write, _fstat = io.open, os.read, os.write, os.fstat
# The files behind the descriptors 0, 1 and 2 while a program runs.
_descriptors = {}


def _real(file):
    if file in ("/dev/stdin", "/dev/stdout"):
        return _descriptors.get(0 if file == "/dev/stdin" else 1, file)
    return _descriptors.get(file, file) if type(file) is int else file


def _open_real(file, *args, **kwargs):
    real = _real(file)
    if real is not file:
        kwargs["closefd"] = False
    return _open(real, *args, **kwargs)


def _redirect():
    builtins.open = io.open = _open_real
    os.read = lambda number, length: _read(_real(number), length)
    os.write = lambda number, data: _write(_real(number), data)
    os.fstat = lambda number: _fstat(_real(number))


def _run_in_line():
    """The sandbox has no threads. Programs start one to get a deeper stack, so its function is run directly."""
    import threading

    threading.Thread.start = lambda self: self.run()
    threading.Thread.join = lambda self, timeout=None: None


def run_program(code, text, max_bytes):
    with _open(_INPUT, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    _descriptors.update({
        0: os.open(_INPUT, os.O_RDONLY),
        1: os.open(_OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC),
        2: os.open(os.devnull, os.O_WRONLY),
    })
    sys.stdin = _open(_descriptors[0], encoding="utf-8", closefd=False)
    sys.stdout = output = _open(_descriptors[1], "w", encoding="utf-8", closefd=False)
    sys.stderr = _open(_descriptors[2], "w", encoding="utf-8", closefd=False)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.exit = main.quit = sys.exit
    error = None
    try:
        exec(compile(code, "<answer>", "exec"), main.__dict__)
    except SystemExit as end:
        error = None if end.code in (None, 0) else f"SystemExit: {end.code}"
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
    for stream in {output, sys.stdout}:
        try:
            stream.flush()
        except Exception:
            pass
    os.lseek(_descriptors[1], 0, 0)
    printed = b""
    while len(printed) < max_bytes and (more := _read(_descriptors[1], 65_536)):
        printed += more
    for number in list(_descriptors):
        os.close(_descriptors.pop(number))
    return {"output": printed[:max_bytes].decode("utf-8", "replace"), "error": None if error is None else error[:500]}


def serve_programs():
    message = "ready"
    while True:
        job = json.loads(host_call(message))
        if "threading" in job["code"]:
            _run_in_line()
        _redirect()
        message = json.dumps(run_program(job["code"], job["input"], job["maxBytes"]))


serve_programs()
