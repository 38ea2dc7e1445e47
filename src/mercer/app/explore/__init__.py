"""A page on this machine to look around in what a model has learned, and to ask it why."""

from mercer.app.explore.exploration import Exploration
from mercer.app.explore.notebook import Page, explore
from mercer.app.explore.server import Server

__all__ = ["Exploration", "Page", "Server", "explore"]
