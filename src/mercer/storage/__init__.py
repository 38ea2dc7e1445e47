"""Files that are written whole or not at all."""

from mercer.storage.atomic import check_path, check_target, write_atomically

__all__ = ["check_path", "check_target", "write_atomically"]
