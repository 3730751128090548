"""What holds for all tests."""

import signal

# A shell's background jobs ignore Ctrl-C, and so would every program that tests
# start and then interrupt: what is caught here is at its default in them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
