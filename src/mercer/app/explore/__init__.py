"""A page on this machine to explore what a model has learned, and to see the reasons for its answers."""

from mercer.app.explore.exploration import Exploration
from mercer.app.explore.notebook import Page, explore
from mercer.app.explore.server import Server

__all__ = ["Exploration", "Page", "Server", "explore"]
