"""The page of `grader watch --page`: a file that is written anew, whole, whenever the room has changed."""

from __future__ import annotations

import time
from pathlib import Path

from grader.course.course import Course
from grader.room.board import Board
from grader.util.errors import InputError
from grader.util.files import write_whole


class PageFile:
    """Keeps a file as the room is. names: whether the page shows them.

    Raises: InputError where the file is somebody's work, or can't be written.
    """

    def __init__(self, course: Course, path: Path, names: bool = False) -> None:
        from grader.room.page import GENERATOR

        if path.is_dir():
            raise InputError(f"{path} is a folder; --page names a file, such as {path / 'room.html'}.")
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                if GENERATOR.encode() not in file.read(2_000):
                    raise InputError(
                        f"{path} already exists and is not a page of a room; --page needs the name of a new file."
                    )
        self._course = course
        self.path, self.names = path, names
        self._board = Board(())
        self._shown: tuple[Board, str] | None = None
        self._failing = False
        trouble = self.show(self._board)
        if trouble:
            raise InputError(trouble)

    def show(self, board: Board) -> str:
        """Writes the page where the room or the minute is another. Returns: why it can't be written, once; else ''."""
        now = (board, time.strftime("%H:%M"))
        if now == self._shown:
            return ""
        self._board = board
        try:
            self._write(ended=False)
        except OSError as error:  # a full disk, a drive that is away: the next change tries again
            failing, self._failing = self._failing, True
            return "" if failing else f"{self.path} can't be written ({error.strerror}); the next change tries again."
        self._shown, self._failing = now, False
        return ""

    def end(self) -> None:
        """The last page says that it is the last, and no longer reads itself anew."""
        try:
            self._write(ended=True)
        except OSError:
            pass

    def _write(self, ended: bool) -> None:
        from grader.room.page import page

        write_whole(self.path, page(self._course, self._board, names=self.names, ended=ended))
