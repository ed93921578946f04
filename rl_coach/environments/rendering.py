"""Windows and videos. Nothing here is imported or opened before a picture is really shown or written."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import sys
from typing import Any, Iterator, Sequence

import numpy as np

from rl_coach.installation import pip_install
from rl_coach.logger import open_video
from rl_coach.utils import CoachError


def has_display() -> bool:
    """True if a window can be opened here."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"))


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Inside this context, SDL draws without a window if there is no display. Without the context, SDL would print an
    error."""
    if has_display():
        yield
        return
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        yield
    finally:
        del os.environ["SDL_VIDEODRIVER"]


class WindowClosed(KeyboardInterrupt):
    """The user has closed the window, which ends the run."""


class Window:
    """Window that shows pictures and knows which keys are held down. It opens with the first picture. It closes when
    the user presses Esc or closes it.

    :param title: the title of the window
    :raises CoachError: if there is no display, or pygame is not installed
    """

    def __init__(self, title: str):
        if not has_display():
            raise CoachError("there is no display to open a window on: leave out --render and --play, or set DISPLAY")
        self._pygame = _import_pygame()
        self._keys = {getattr(self._pygame, name) for name in dir(self._pygame) if name.startswith("K_")}
        self._title = title
        self._screen: Any = None
        self._clock: Any = None
        self._tapped: set[int] = set()
        self.is_open = True

    @staticmethod
    def key_name(key: int) -> str:
        """The name of a key, for the user."""
        return _import_pygame().key.name(key)

    def show(self, image: np.ndarray) -> None:
        """Show a picture ([height, width, 3] uint8). After the user has closed the window, do nothing."""
        if not self.is_open:
            return
        if self._screen is None:
            self._open(image)
        pygame = self._pygame
        picture = pygame.surfarray.make_surface(np.swapaxes(image, 0, 1))
        self._screen.blit(pygame.transform.scale(picture, self._screen.get_size()), (0, 0))
        pygame.display.flip()
        self._handle_events()

    def _open(self, image: np.ndarray) -> None:
        height, width = image.shape[:2]
        scale = max(1, 480 // max(height, width))
        try:
            self._pygame.display.init()
            self._screen = self._pygame.display.set_mode((width * scale, height * scale))
        except self._pygame.error as error:
            raise CoachError(f"no window can be opened here ({error}): leave out --render and --play") from None
        self._pygame.display.set_caption(self._title)
        self._clock = self._pygame.time.Clock()

    def _handle_events(self) -> None:
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                self.close()
                return
            if event.type == pygame.KEYDOWN:
                self._tapped.add(event.key)

    def tick(self, frames_per_second: float) -> None:
        """Wait until the next frame is due. :param frames_per_second: the rate of the frames; 0 does not wait"""
        if self._clock is not None:
            self._clock.tick(frames_per_second)

    def pressed_keys(self) -> set[int]:
        """The codes of the keys that are held down, or were pressed since the last call.

        :raises WindowClosed: if the user has closed the window
        """
        if self._screen is not None:
            self._handle_events()
        if not self.is_open:
            raise WindowClosed
        if self._screen is None:
            return set()
        held = self._pygame.key.get_pressed()
        pressed = self._tapped | {key for key in self._keys if held[key]}
        self._tapped = set()
        return pressed

    def close(self) -> None:
        """Close the window for good."""
        self.is_open = False
        if self._screen is not None:
            self._screen = None
            self._pygame.display.quit()


def _import_pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise CoachError(f"windows need pygame: {pip_install('pygame')}") from None
    return pygame


def side_by_side(image: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """A picture, with other pictures to its right that are scaled to its height: [height, width, 3].

    :param image: [height, width, 3] uint8
    :param others: [h, w, channels] uint8; without 3 channels, the last channel is shown in grey
    """
    parts, height = [image], len(image)
    for other in others:
        width = max(1, round(other.shape[1] * height / len(other)))
        rows, columns = (np.arange(new) * old // new for new, old in zip((height, width), other.shape))
        colours = other if other.shape[2] == 3 else np.repeat(other[:, :, -1:], 3, axis=2)
        parts.append(colours[rows][:, columns])
    return np.concatenate(parts, axis=1)


class EpisodeVideo:
    """Video of one episode, encoded while the episode runs.

    The files have temporary names until ``keep``.

    :param directory: GIFs go to its ``gifs/``, MP4s to its ``videos/``
    :param gif: write a GIF
    :param mp4: write an MP4
    :param frames_per_second: rate of playback
    :param every: record every n-th picture; 1 records all
    :raises CoachError: if imageio is not installed
    """

    def __init__(self, directory: str, gif: bool, mp4: bool, frames_per_second: int, every: int = 1):
        self._every = every
        self._seen = 0
        self._writers: dict[pathlib.Path, Any] = {}
        self._has_pictures = False
        base = pathlib.Path(directory)
        if gif:
            self._open(base / "gifs" / ".recording.gif", frames_per_second)
        if mp4:
            self._open(base / "videos" / ".recording.mp4", frames_per_second)

    def _open(self, path: pathlib.Path, frames_per_second: float) -> None:
        path = path.with_name(f"{path.stem}-{os.getpid()}-{id(self)}{path.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writers[path] = open_video(str(path), frames_per_second)

    def counts_next(self) -> bool:
        """Count the next picture. Returns True if the caller must ``add`` it; other pictures need not be drawn."""
        self._seen += 1
        return (self._seen - 1) % self._every == 0

    def add(self, image: np.ndarray) -> None:
        """Append a picture: [height, width, 3] uint8."""
        self._has_pictures = True
        for writer in self._writers.values():
            writer.append_data(image)

    def keep(self, name: str) -> list[pathlib.Path]:
        """Finish the files under a name without suffix, and return their paths; an empty list if no picture was added.

        :raises OSError: if the files cannot be written
        """
        if not self._has_pictures:
            self.discard()
            return []
        kept = []
        for path, writer in self._writers.items():
            writer.close()
            if not path.stat().st_size:
                raise OSError(errno.EIO, "the encoder has written nothing")
            kept.append(path.replace(path.with_name(name + path.suffix)))
        return kept

    def discard(self) -> None:
        """Drop the files."""
        for path, writer in self._writers.items():
            writer.close()
            path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Drop the files after writing to them has failed."""
        for path, writer in self._writers.items():
            encoder = getattr(writer, "instance", None)
            getattr(encoder, "images_to_write", []).clear()  # otherwise the encoder writes again when it is deleted
            with contextlib.suppress(OSError):
                writer.close()
            path.unlink(missing_ok=True)
