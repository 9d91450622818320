"""Tools for Kairo's agents, carried out by a process of yours.

The protocol is in docs/tool-workers.md of Kairo.
"""

from .call import Call, ToolError
from .worker import Tool, Worker

__all__ = ["Call", "Tool", "ToolError", "Worker"]
