"""Token encoders: an instruction, the ones before it in its window and the launch's profile to gates.

Legend: B window, T instruction of a window, F token feature, C entry of the launch profile, H hidden, D gate.

Every encoder is causal: gates of instruction i depend on instructions up to i alone, so a window that is cut short
keeps its gates. All gates lie in (0, 1): they weigh counted units and cannot grow without bound on a kernel that is
unlike any seen in training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from perfvec.errors import ConfigError

# Wide enough that the gates differ from the start. With gates that all start alike, four launches take five times as
# many steps to fit.
_GATE_GAIN = 4.0
# Width of an attention head, and the ratio of the slowest to the fastest of its turning rates, for windows of 256.
_HEAD_WIDTH = 16
_ROTARY_BASE = 1000.0


class AbstractEncoder(nn.Module, ABC):
    """Maps padded windows to gates. Inputs are normalised."""

    @abstractmethod
    def forward(self, features_BTF: Tensor, profile_BC: Tensor, lengths_B: Tensor) -> Tensor:
        """Gates of each instruction.

        Args:
            features_BTF: Token features, zeros after a window's end.
            profile_BC: Profile of the launch that each window belongs to.
            lengths_B: Instructions of each window, 1 to T.

        Returns:
            gates_BTD, 0 to 1. What stands after a window's end is of no meaning.
        """


class GateHead(nn.Module):
    """Hidden values to gates in (0, 1), in single precision whatever the rest runs in."""

    def __init__(self, hidden: int, num_gates: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, num_gates)
        with torch.no_grad():
            # Start as gates of different openness, 0.05 to 0.7, that differ in what opens them.
            self.linear.weight.mul_(_GATE_GAIN)
            self.linear.bias.copy_(torch.linspace(-3.0, 1.0, max(num_gates, 1))[torch.randperm(num_gates)])

    def forward(self, hidden_BTH: Tensor, straight_BTG: Tensor | float = 0.0) -> Tensor:
        """Gates of the same leading shape; with what is added to the values that they are the sigmoids of."""
        return torch.sigmoid((self.linear(hidden_BTH) + straight_BTG).float())


@final
class PooledEncoder(AbstractEncoder):
    """No sequence at all: a small network on each instruction alone. The control for the other two."""

    def __init__(
        self, *, num_features: int, num_profile: int, num_gates: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = _TokenEmbedding(num_features, num_profile, hidden)
        self.blocks = nn.ModuleList(_GatedBlock(hidden, taps=1, dilation=1, dropout=dropout) for _ in range(layers))
        self.head = GateHead(hidden, num_gates)

    def forward(self, features_BTF: Tensor, profile_BC: Tensor, lengths_B: Tensor) -> Tensor:  # noqa: ARG002
        """See `AbstractEncoder.forward`."""
        hidden_BTH = self.embed(features_BTF, profile_BC)
        for block in self.blocks:
            hidden_BTH = block(hidden_BTH)
        return self.head(hidden_BTH)


@final
class ConvEncoder(AbstractEncoder):
    """Gated causal convolutions with growing dilation; layer n reaches 3 · 4^n instructions further back."""

    def __init__(
        self, *, num_features: int, num_profile: int, num_gates: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = _TokenEmbedding(num_features, num_profile, hidden)
        self.blocks = nn.ModuleList(
            _GatedBlock(hidden, taps=4, dilation=4**layer, dropout=dropout) for layer in range(layers)
        )
        self.head = GateHead(hidden, num_gates)

    def forward(self, features_BTF: Tensor, profile_BC: Tensor, lengths_B: Tensor) -> Tensor:  # noqa: ARG002
        """See `AbstractEncoder.forward`."""
        hidden_BTH = self.embed(features_BTF, profile_BC)
        for block in self.blocks:
            hidden_BTH = block(hidden_BTH)
        return self.head(hidden_BTH)


@final
class LSTMEncoder(AbstractEncoder):
    """A unidirectional LSTM, as in PerfVec (SC'24), whose reference has two layers of 256."""

    def __init__(
        self, *, num_features: int, num_profile: int, num_gates: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = _TokenEmbedding(num_features, num_profile, hidden)
        # PyTorch warns where dropout is asked of a single layer, which has nothing to drop between.
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.head = GateHead(hidden, num_gates)

    def forward(self, features_BTF: Tensor, profile_BC: Tensor, lengths_B: Tensor) -> Tensor:  # noqa: ARG002
        """See `AbstractEncoder.forward`."""
        # Padding comes last and the LSTM only looks back, so no packing is needed.
        hidden_BTH, _ = self.lstm(self.embed(features_BTF, profile_BC))
        return self.head(hidden_BTH)


@final
class TransformerEncoder(AbstractEncoder):
    """Causal self-attention (Vaswani et al. 2017), normalised before each part, with rotary positions.

    Rotary positions (Su et al. 2021) tell how far apart two instructions are, not where in the window they stand, so a
    loop body looks alike wherever a window begins.
    """

    def __init__(
        self, *, num_features: int, num_profile: int, num_gates: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = _TokenEmbedding(num_features, num_profile, hidden)
        self.blocks = nn.ModuleList(_AttentionBlock(hidden, dropout=dropout) for _ in range(layers))
        self.head = GateHead(hidden, num_gates)

    def forward(self, features_BTF: Tensor, profile_BC: Tensor, lengths_B: Tensor) -> Tensor:  # noqa: ARG002
        """See `AbstractEncoder.forward`."""
        # Padding comes last and attention only looks back, so no mask of lengths is needed.
        hidden_BTH = self.embed(features_BTF, profile_BC)
        for block in self.blocks:
            hidden_BTH = block(hidden_BTH)
        return self.head(hidden_BTH)


ENCODERS: dict[str, type[ConvEncoder] | type[LSTMEncoder] | type[PooledEncoder] | type[TransformerEncoder]] = {
    "conv": ConvEncoder,
    "lstm": LSTMEncoder,
    "pooled": PooledEncoder,
    "transformer": TransformerEncoder,
}


def make_encoder(
    name: str, *, num_features: int, num_profile: int, num_gates: int, hidden: int, layers: int, dropout: float
) -> AbstractEncoder:
    """Make the encoder of that name.

    Raises:
        ConfigError: There is none, or its width does not divide into heads.
    """
    if name not in ENCODERS:
        raise ConfigError(f"there is no encoder {name!r}; choose one of {', '.join(sorted(ENCODERS))}")
    return ENCODERS[name](
        num_features=num_features,
        num_profile=num_profile,
        num_gates=num_gates,
        hidden=hidden,
        layers=layers,
        dropout=dropout,
    )


class _TokenEmbedding(nn.Module):
    """Token features plus the launch's profile, each through a linear map."""

    def __init__(self, num_features: int, num_profile: int, hidden: int) -> None:
        super().__init__()
        self.token = nn.Linear(num_features, hidden)
        self.profile = nn.Sequential(nn.Linear(num_profile, hidden), nn.SiLU(), nn.Linear(hidden, hidden))

    def forward(self, features_BTF: Tensor, profile_BC: Tensor) -> Tensor:
        return functional.silu(self.token(features_BTF) + self.profile(profile_BC)[:, None])


class _GatedBlock(nn.Module):
    """hidden + GLU(causal convolution of normalised hidden); the convolution is one matrix product over shifted copies.

    On CPU that is several times faster than `nn.Conv1d`, which wants the instruction axis last.
    """

    def __init__(self, hidden: int, *, taps: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.taps = taps
        self.dilation = dilation
        self.norm = nn.LayerNorm(hidden)
        self.mix = nn.Linear(taps * hidden, 2 * hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_BTH: Tensor) -> Tensor:
        normal_BTH = self.norm(hidden_BTH)
        num_tokens = hidden_BTH.shape[1]
        reach = (self.taps - 1) * self.dilation
        padded = functional.pad(normal_BTH, (0, 0, reach, 0))
        shifted = [padded[:, reach - i * self.dilation :][:, :num_tokens] for i in range(self.taps)]
        return hidden_BTH + self.dropout(functional.glu(self.mix(torch.cat(shifted, dim=-1)), dim=-1))


class _AttentionBlock(nn.Module):
    """hidden + attention(hidden), then hidden + GLU network(hidden)."""

    def __init__(self, hidden: int, *, dropout: float) -> None:
        super().__init__()
        if hidden % _HEAD_WIDTH:
            raise ConfigError(
                f"model setting hidden is {hidden}; the transformer encoder needs a multiple of {_HEAD_WIDTH}, its "
                "width of a head"
            )
        self.attention_norm = nn.LayerNorm(hidden)
        self.inputs = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.network_norm = nn.LayerNorm(hidden)
        self.network = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GLU(), nn.Linear(2 * hidden, hidden))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_BTH: Tensor) -> Tensor:
        heads = self.inputs(self.attention_norm(hidden_BTH)).unflatten(-1, (3, -1, _HEAD_WIDTH))
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(dim=2))
        seen = functional.scaled_dot_product_attention(
            rotate_by_place(query), rotate_by_place(key), value, is_causal=True
        )
        hidden_BTH = hidden_BTH + self.dropout(self.output(seen.transpose(1, 2).flatten(2)))
        return hidden_BTH + self.dropout(self.network(self.network_norm(hidden_BTH)))


def rotate_by_place(heads: Tensor) -> Tensor:
    """Turn pairs of entries (batch, head, T, width) by angles that grow with the place, slower from pair to pair."""
    length, width = heads.shape[-2:]
    rates = _ROTARY_BASE ** -torch.arange(0, 1, 2 / width, device=heads.device)
    angles = torch.arange(length, device=heads.device)[:, None] * rates
    first, second = heads.float().chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1).to(heads.dtype)
