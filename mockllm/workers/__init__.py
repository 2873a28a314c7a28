"""Several processes behind one address: the parent binds, starts, replaces and stops them, and keeps their books."""

from mockllm.workers.board import SharedBoard
from mockllm.workers.books import Books, BooksServer
from mockllm.workers.setup import Setup
from mockllm.workers.supervisor import StartError, Supervisor

__all__ = ["Books", "BooksServer", "Setup", "SharedBoard", "StartError", "Supervisor"]
