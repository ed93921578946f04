"""The process of several seeds, from inside."""

from __future__ import annotations

import socket
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace

from rl_coach.orchestrators.seeds_server import SeedsServer

TOO_LONG = 60.0
REQUESTS = ("begin", "begin_episodes", "results", "output_names", "leaves", "set_leaves")


def connected(address: str) -> Connection:
    client = socket.socket(socket.AF_UNIX)
    client.connect(address)
    return Connection(client.detach())


def test_a_client_that_says_nothing_delays_nobody(tmp_path):
    address, (ours, theirs) = str(tmp_path / "seeds"), Pipe()
    program = SimpleNamespace(**dict.fromkeys(REQUESTS, lambda row, *values: (row, values)))
    with socket.socket(socket.AF_UNIX) as listening, ours, theirs:
        listening.bind(address)
        listening.listen(2)
        server = threading.Thread(target=SeedsServer(listening, theirs, ["one", "other"], program).serve, daemon=True)
        server.start()
        with connected(address), connected(address) as seed:
            seed.send(("other",))
            seed.send(("begin", 5))
            assert seed.poll(TOO_LONG), "the server waits for the client that says nothing"
            assert seed.recv() == (1, (5,))
            ours.send("one")
            seed.close()
            server.join(TOO_LONG)
            assert not server.is_alive()
