"""The places that tests/mutants.py changes; by itself, as a changed place is no place any more."""

from mutants import MUTANTS, require_places


def test_the_places_of_the_mutants_are_there():
    require_places(MUTANTS)
    assert len(MUTANTS) >= 40
