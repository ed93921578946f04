"""Modules as users write them."""

from __future__ import annotations

import torch
from torch import nn


class Encoder(nn.Module):
    """Layers for a vector, with batch normalisation."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.ELU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Residual(nn.Module):
    """A layer around which the features pass as well."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.inner = nn.Linear(shape[0], shape[0])
        self.scale = torch.linspace(0.5, 1.5, shape[0])  # neither trained nor a buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.inner(x) * self.scale)


class Forgetful(nn.Sequential):
    """Dropout of PyTorch's own."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__(nn.Linear(shape[0], 4), nn.Dropout(0.5))


class Branching(nn.Module):
    """Another computation for other values."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.inner = nn.Linear(shape[0], 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) if x.sum() > 0 else self.inner(-x)
