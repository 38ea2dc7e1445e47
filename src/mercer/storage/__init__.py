"""Reading and writing of files: a file is written completely or not at all, and is checked before it is read."""

from mercer.storage.atomic import check_path, check_target, write_atomically

__all__ = ["check_path", "check_target", "write_atomically"]
