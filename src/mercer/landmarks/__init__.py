"""Landmarks: the few rows that stand for all, and what is computed from every row against them."""

from mercer.landmarks.choice import KERNEL_METHODS, METHODS, choose_landmarks
from mercer.landmarks.on_disk import kernel_matrix_on_disk

__all__ = ["KERNEL_METHODS", "METHODS", "choose_landmarks", "kernel_matrix_on_disk"]
