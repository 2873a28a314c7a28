"""A connection without a socket: a transport that keeps what is written, and a fake clock that plays it."""
