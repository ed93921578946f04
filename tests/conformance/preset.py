"""The preset of the cell that the environment variable ``CONFORMANCE_CELL`` names, for cells of several processes."""

import os

from tests.conformance.axes import Cell
from tests.conformance.recording import record_learning
from tests.conformance.running import graph_of

record_learning()
graph_manager = graph_of(Cell.of(os.environ["CONFORMANCE_CELL"]))
