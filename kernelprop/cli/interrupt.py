"""Ctrl-C during a computation that keeps the main thread inside compiled code."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130


@contextmanager
def ends_at_once(farewell: Callable[[], object]) -> Iterator[None]:
    """End the process at the first Ctrl-C, after ``farewell``, while the body runs.

    Python's own handler waits until the main thread leaves compiled code, which can be minutes. Only for a body
    that leaves nothing half-written: nothing is cleaned up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hears, says = socket.socketpair()
    says.setblocking(False)
    before = signal.set_wakeup_fd(says.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(hears, farewell), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        says.close()  # the watcher hears the end and closes its side


def _watch(hears: socket.socket, farewell: Callable[[], object]) -> None:
    with hears:
        while number := hears.recv(1):
            if number[0] == signal.SIGINT:
                farewell()
                os._exit(INTERRUPTED)
