"""Landmarks: the choice of a few rows that represent all, and the kernel values and features of rows with them."""

from mercer.landmarks.choice import KERNEL_METHODS, METHODS, choose_landmarks
from mercer.landmarks.on_disk import kernel_matrix_on_disk

__all__ = ["KERNEL_METHODS", "METHODS", "choose_landmarks", "kernel_matrix_on_disk"]
