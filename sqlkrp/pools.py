"""Draw pools of hyperplanes, and choose which of them each component uses.

Every function takes the generator, draws whole arrays, and returns plain tables; nothing is ever
drawn again. What only one map draws (landmarks, degrees, hashes) it draws from the same generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sqlkrp.memory import ENTRY_BYTES, require_memory

__all__ = [
    "SignTable",
    "choose_hadamard_hyperplanes",
    "choose_hyperplanes",
    "choose_members",
    "choose_pairs",
    "chunks_with_constant",
    "draw_achlioptas",
    "draw_cauchy",
    "draw_gaussian",
    "draw_hadamard",
    "draw_phases",
    "draw_signs",
    "generator",
    "hadamard_block_size",
    "hadamard_chunks",
    "seed_of",
]

# An iid pool is drawn a slab of rows at a time so that a very wide table needs no p x d array of
# doubles; the slabs read one stream, so their size does not change what is drawn.
_SLAB_ENTRIES = 4_000_000
# Seeds that generators of others draw from: what every kind of them can.
_SEEDS = 2**62


class SignTable(NamedTuple):
    """The nonzero entries of ternary hyperplanes, sorted by hyperplane, then feature."""

    hyperplane: NDArray[np.int32]
    feature: NDArray[np.int32]
    sign: NDArray[np.int8]


def generator(seed: int) -> np.random.Generator:
    """The one kind of generator that draws maps: PCG64 on an explicit seed."""
    return np.random.Generator(np.random.PCG64(seed))


def seed_of(random_state: Any) -> int:
    """The seed that a ``random_state`` comes to: its own, or one that is drawn."""
    if random_state is None:
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        return entropy
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_SEEDS, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_SEEDS))
    return int(random_state)


def draw_achlioptas(
    rng: np.random.Generator, n_hyperplanes: int, n_features: int, s: float
) -> SignTable:
    """Draw ternary hyperplanes, each entry independent.

    ===========  ==========
    entry        probability
    ===========  ==========
    +1           1 / (2 s)
    0            1 - 1 / s
    -1           1 / (2 s)
    ===========  ==========

    The factor sqrt(s), which makes the variance 1, is left to the map's last multiplication.
    A hyperplane that comes out all zero stays as it is: drawing it again would condition the
    distribution and bias the kernel. (Achlioptas 2001.)

    >>> table = draw_achlioptas(generator(0), n_hyperplanes=2, n_features=3, s=1)
    >>> table.hyperplane.tolist(), table.feature.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    """
    _require_room(n_hyperplanes, n_features, 1.0 / s)
    nothing = np.zeros(0, dtype=np.int64)
    parts = [(nothing, nothing, nothing)]
    slab = max(1, _SLAB_ENTRIES // max(1, n_features))
    for first in range(0, n_hyperplanes, slab):
        rows = min(slab, n_hyperplanes - first)
        uniform = rng.random((rows, n_features))
        hyperplane, feature = np.nonzero(uniform < 1.0 / s)
        sign = np.where(uniform[hyperplane, feature] < 0.5 / s, -1, 1)
        parts.append((hyperplane + first, feature, sign))
    hyperplane, feature, sign = (np.concatenate(column) for column in zip(*parts, strict=True))
    return SignTable(hyperplane.astype("i4"), feature.astype("i4"), sign.astype("i1"))


def draw_gaussian(
    rng: np.random.Generator, n_hyperplanes: int, n_features: int
) -> NDArray[np.float32]:
    """Draw hyperplanes of independent N(0, 1) entries, rounded to single precision.

    The rounding moves an entry by less than one part in 10^7. In return the stored number *is*
    the number that both FLOAT and DOUBLE engines multiply by, and the map file is half the size.
    """
    _require_room(n_hyperplanes, n_features)
    return rng.standard_normal((n_hyperplanes, n_features)).astype(np.float32)


def draw_cauchy(
    rng: np.random.Generator, n_hyperplanes: int, n_features: int
) -> NDArray[np.float32]:
    """Draw hyperplanes of independent standard Cauchy entries, rounded to single precision."""
    _require_room(n_hyperplanes, n_features)
    return rng.standard_cauchy((n_hyperplanes, n_features)).astype(np.float32)


def _require_room(n_hyperplanes: int, n_features: int, share: float = 1.0) -> None:
    """Raise LimitError if hyperplanes take too much memory, of which a share is not zero."""
    require_memory(
        ENTRY_BYTES * share * n_hyperplanes * n_features,
        f"a pool of {n_hyperplanes:,} hyperplanes of {n_features:,} columns",
        "fewer components or columns, or a map or pool of Hadamard blocks",
    )


def draw_phases(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Angles, uniform on a circle."""
    return rng.uniform(0, 2 * math.pi, count)


def hadamard_block_size(n_features: int, block_size: int) -> int:
    """The chunk size a pool really takes: no larger than the columns, as a power of two, need."""
    return min(block_size, 1 << max(0, n_features - 1).bit_length())


def hadamard_chunks(n_features: int, block_size: int, constant: bool = False) -> int:
    """How many chunks a block is cut into; ``constant`` as :func:`draw_hadamard` has it."""
    spread = _is_spread(n_features, block_size, constant)
    return -(-(n_features - spread) // (block_size - spread))


def chunks_with_constant(n_features: int, block_size: int) -> int:
    """In how many chunks of a block the constant column of a kernel stands, the last column."""
    spread = _is_spread(n_features, block_size, constant=True)
    return hadamard_chunks(n_features, block_size, constant=True) if spread else 1


def _is_spread(n_features: int, block_size: int, constant: bool) -> bool:
    """Whether a constant column stands in several chunks; those of one place have no room."""
    return constant and 1 < block_size < n_features


def draw_hadamard(
    rng: np.random.Generator,
    n_blocks: int,
    n_features: int,
    block_size: int,
    constant: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Draw, for each block, the place of every column and its sign.

    The columns are padded to whole chunks of ``block_size``, permuted and signed, once per block;
    place ``q * block_size + i`` is place i of chunk q. Returns (column of each place, or -1 for
    padding; sign of each place), both of shape (n_blocks, padded columns).

    If the last column is the ``constant`` of a kernel, it stands in each chunk: as large as all
    other columns together, it would set hyperplanes with it far apart from those without. In a
    chunk it has its share: the column is to be divided by the root of :func:`chunks_with_constant`.
    """
    padded = hadamard_chunks(n_features, block_size, constant) * block_size
    if _is_spread(n_features, block_size, constant):
        column = _with_constant(rng, n_blocks, n_features, block_size, padded)
    else:
        column = np.tile(np.arange(padded, dtype=np.int32), (n_blocks, 1))
        column = rng.permuted(column, axis=1)
        column = np.where(column < n_features, column, -1).astype("i4")
    return column, draw_signs(rng, (n_blocks, padded))


def _with_constant(
    rng: np.random.Generator, n_blocks: int, n_features: int, block_size: int, padded: int
) -> NDArray[np.int32]:
    """The column of each place: at the first one of each chunk the last column."""
    places = np.arange(padded)
    free = places[places % block_size != 0]
    # What is left empty comes in pairs of places, with which the fewest additions are left.
    pairs = rng.random((n_blocks, padded // 2))
    order = np.argsort(pairs[:, free // 2], axis=1, kind="stable")[:, : n_features - 1]
    columns = np.tile(np.arange(n_features - 1, dtype=np.int32), (n_blocks, 1))
    found = np.full((n_blocks, padded), -1, dtype=np.int32)
    found[:, ::block_size] = n_features - 1
    np.put_along_axis(found, free[order], rng.permuted(columns, axis=1), axis=1)
    return found


def draw_signs(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """Draw independent signs, +1 or -1 with equal probability."""
    return (2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1).astype(np.int8)


def choose_hyperplanes(
    rng: np.random.Generator, n_hyperplanes: int, n_components: int, n_terms: int, degree: int
) -> NDArray[np.int32]:
    """Give each component ``n_terms * degree`` distinct hyperplanes, all used equally often.

    Returns the hyperplane of (component, term, factor). With repeats inside a component the
    estimate of the kernel would be biased (two equal factors multiply to a square).
    """
    slots = n_terms * degree
    component = np.repeat(np.arange(n_components), slots)
    chosen = _deal(rng, n_hyperplanes, component)
    return chosen.reshape(n_components, n_terms, degree).astype(np.int32)


def choose_hadamard_hyperplanes(
    rng: np.random.Generator,
    n_blocks: int,
    per_block: int,
    n_components: int,
    n_terms: int,
    degree: int,
) -> NDArray[np.int32]:
    """Give each component ``n_terms * degree`` distinct hyperplanes of a Hadamard pool.

    Returns the hyperplane of (component, term, factor). Blocks are dealt in turn, so that with
    ``n_blocks >= degree`` the factors of a term come from different blocks; inside a block
    hyperplanes are dealt as :func:`choose_hyperplanes` deals them.
    """
    shape = (n_components, n_terms, degree)
    slot = np.arange(np.prod(shape)).reshape(shape)
    block = slot % n_blocks
    component = np.broadcast_to(np.arange(n_components)[:, None, None], shape)
    chosen = np.empty(shape, dtype=np.int32)
    for b in range(n_blocks):
        here = block == b
        chosen[here] = b * per_block + _deal(rng, per_block, component[here])
    return chosen


def choose_members(
    rng: np.random.Generator, sizes: Sequence[int], n_components: int, n_terms: int
) -> NDArray[np.int32]:
    """Give each component ``n_terms`` distinct members of each pool, all used equally often.

    Returns (component, term, pool): the place of a member in its pool.
    """
    component = np.repeat(np.arange(n_components), n_terms)
    chosen = [_deal(rng, size, component).reshape(n_components, n_terms) for size in sizes]
    return np.stack(chosen, axis=-1).astype(np.int32)


def choose_pairs(
    rng: np.random.Generator, n_first: int, n_second: int, count: int
) -> NDArray[np.int32]:
    """Pair members of two pools, all used equally often; no pair twice until there is no other."""
    place = np.arange(count)
    # Both in turn meet after their least common multiple; then the second is one further.
    further = place + place // math.lcm(n_first, n_second)
    first = rng.permutation(n_first)[place % n_first]
    second = rng.permutation(n_second)[further % n_second]
    return np.stack([first, second], axis=1).astype(np.int32)


def _deal(rng: np.random.Generator, n_cards: int, player: NDArray[np.int64]) -> NDArray[np.int64]:
    """Deal shuffled decks to slots in order, no player getting one card twice.

    ``player`` is sorted, and no player holds more than ``n_cards`` slots. Whole decks make the
    use of the cards equal; only a player whose hand runs over the end of a deck could meet a card
    again, so each new deck first gives that player the cards that are not in the hand yet.
    """
    dealt = np.empty(len(player), dtype=np.int64)
    for start in range(0, len(player), n_cards):
        stop = min(start + n_cards, len(player))
        deck = rng.permutation(n_cards)
        hand_start = int(np.searchsorted(player, player[start]))
        hand_stop = int(np.searchsorted(player, player[start], side="right"))
        hand = dealt[hand_start:start]
        if len(hand):
            fresh = ~np.isin(deck, hand)
            fresh[np.flatnonzero(fresh)[hand_stop - start :]] = False
            deck = np.concatenate([deck[fresh], deck[~fresh]])
        dealt[start:stop] = deck[: stop - start]
    return dealt
