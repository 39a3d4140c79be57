"""A parameter is declared once: constructor, checks, documentation and options follow from it."""

import argparse
import inspect
import pydoc
import re
from dataclasses import KW_ONLY

import numpy as np
import pytest
from sklearn.base import clone
from support import dyadic

import sqlkrp
from sqlkrp.cli import parser
from sqlkrp.errors import ParameterError, UnknownParameterError
from sqlkrp.maps import CLASSES, MAPS
from sqlkrp.maps.allowed import Even, Number, OneOf, PowerOfTwo, Seed, Switch, Whole
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import COMPONENTS, SCALING, SingleMap
from sqlkrp.options import MAP_OPTIONS, argument, options_of_map

every_map = pytest.mark.parametrize("one", CLASSES.values(), ids=CLASSES)
#: What a map is not made without.
NEEDED = {"map": sqlkrp.KRP(2, 3), "maps": (sqlkrp.PCA(1), sqlkrp.KRP(2, 3))}
#: What is given by its place; all others by their names.
FIRST = [
    ["degree", "n_components"], ["degree"], ["n_components"], ["n_thresholds"],
    ["map", "n_members"], ["maps"],
]  # fmt: skip


def made(one, **parameters):
    needed = {name: value for name, value in NEEDED.items() if name in one.declared}
    return one(**needed, **parameters)


@with_parameters
class Powers(SingleMap):
    """A map with a parameter of its own.

    Reference: nobody.
    """

    n_components: int = COMPONENTS.by_default(10)
    _: KW_ONLY
    n_powers: float = Parameter(
        Number(0, above=True, words={"auto": "1"}), "to which power", metavar="P"
    ).by_default(2.0)
    scaling: str | None = SCALING.by_default("unit")


def test_a_declaration_is_a_parameter_of_the_constructor():
    signature = inspect.signature(Powers)
    assert str(signature.replace(return_annotation=inspect.Signature.empty)) == (
        "(n_components: int = 10, *, n_powers: float = 2.0, scaling: str | None = 'unit', "
        "clip: 'float | str | None' = 'auto', nulls: 'str' = 'error', dtype: 'str' = 'auto', "
        "random_state: 'Any' = None)"
    )
    one = Powers(7, n_powers=3)
    assert (one.n_components, one.n_powers, one.scaling) == (7, 3, "unit")
    assert repr(one).startswith("Powers(n_components=7, n_powers=3, scaling='unit', clip='auto',")


def test_a_declaration_is_a_check_at_fit():
    one = Powers(n_powers=0)  # which says nothing yet, as in scikit-learn
    told = r"^n_powers=0 is not allowed: use a number > 0, or 'auto'$"
    with pytest.raises(ParameterError, match=told):
        one.fit(["a"])
    for whole in (sqlkrp.Ensemble(one, 2), sqlkrp.chain(sqlkrp.PCA(1), one)):
        with pytest.raises(ParameterError, match=told):
            whole.fit(["a"])


def test_a_declaration_is_documentation():
    about, _, rest = Powers.__doc__.partition("\n\nParameters\n----------\n")
    entries, _, after = rest.partition("\n\n")
    assert (about, after) == ("A map with a parameter of its own.", "Reference: nobody.")
    assert "\nn_powers : to which power: a number > 0, or 'auto' (1) (default: 2.0)\n" in entries
    assert re.findall(r"^(\w+) : ", entries, re.MULTILINE) == Powers.parameter_names()


def test_a_declaration_is_an_option():
    power = Powers.declared["n_powers"]
    assert power.option == "powers"
    one = argparse.ArgumentParser()
    one.add_argument("--powers", **argument(power))
    assert one.parse_args(["--powers", "1.5"]).powers == 1.5
    assert one.parse_args(["--powers", "auto"]).powers == "auto"
    told = " ".join(one.format_help().split())
    assert "--powers P to which power: a number > 0, or auto (1) (default: 2)" in told


def test_a_map_that_inherits_has_what_it_declares_and_what_its_bases_do():
    @with_parameters
    class Sharper(Powers):
        """Powers with another default, and one parameter more."""

        _: KW_ONLY
        binary: bool = Parameter(Switch(), "give signs").by_default(False)
        n_powers: float = Parameter(Whole(1), "to which power").by_default(5)

    assert Sharper.parameter_names() == [
        "n_components", "binary", "n_powers", "scaling", "clip", "nulls", "dtype", "random_state",
    ]  # fmt: skip
    assert Sharper.default_params()["n_powers"] == Sharper().n_powers == 5
    assert Powers.default_params()["n_powers"] == Powers().n_powers == 2


@every_map
def test_every_map_has_the_constructor_of_its_declarations(one):
    for signature in (inspect.signature(one), inspect.signature(one.__init__)):
        parameters = [of for name, of in signature.parameters.items() if name != "self"]
        assert [of.name for of in parameters] == one.parameter_names()
        assert parameters[-1].name == "random_state"
        first = [of.name for of in parameters if of.kind is of.POSITIONAL_OR_KEYWORD]
        assert first in FIRST
        defaults = {of.name: of.default for of in parameters if of.default is not of.empty}
        assert defaults == one.default_params()
    values = {name: object() for name in one.parameter_names()}
    assert one(**values).get_params(deep=False) == values  # kept as they are: not copied, not read


def test_a_map_equals_itself_alone():
    # As scikit-learn's estimators: equal parameters do not make two maps one.
    one, other = sqlkrp.KRP(2, 3), sqlkrp.KRP(2, 3)
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize("one", [sqlkrp.ComplexKRP(22, 4), sqlkrp.TensorSketch(22, 4)])
def test_a_degree_of_complex_products_has_small_factors(one):
    # 22 = 2 * 11, and a product of 11 complex numbers has 2^11 terms.
    with pytest.raises(ParameterError, match=r"^degree=22 is not allowed: a product of 11 complex"):
        one.fit(["a", "b"])


def test_help_without_a_map_is_that_of_the_default_map():
    first = {one.option: one for one in sqlkrp.KRP.declared.values() if one.flag is not None}
    assert list(MAP_OPTIONS.items())[: len(first)] == list(first.items())


@every_map
def test_every_map_is_cloned_with_its_parameters(one):
    copied = clone(made(one, random_state=7))
    assert copied.get_params(deep=False).keys() == one.declared.keys()
    assert copied.random_state == 7


@every_map
def test_the_help_of_a_map_tells_each_parameter_and_its_default(one):
    told = pydoc.render_doc(one, renderer=pydoc.plaintext)
    told = re.sub(r"(?m) +$", "", told)  # which Python 3.13 does itself
    entries = told.partition(" |  Parameters\n |  ----------\n")[2].partition("\n |\n")[0]
    entries = re.split(r" \|  (?=\S)", " |  " + entries.removeprefix(" |  "))[1:]
    for entry, declared in zip(entries, one.declared.values(), strict=True):
        entry = " ".join(entry.replace(" |  ", "").split())
        default = f" (default: {declared.default!r})" if declared.has_default else ""
        assert entry == f"{declared.name} : {declared.text(repr)}{default}"
        assert not declared.meaning.endswith(".")


@every_map
def test_the_first_parameters_are_given_by_place_and_the_others_by_name(one):
    with pytest.raises(TypeError, match=r"without a name, and takes .* so: name the others") as no:
        one(1, 2, 3)
    assert isinstance(no.value, UnknownParameterError)
    assert "\n" not in str(no.value)


def test_what_is_given_by_place_is_named():
    with pytest.raises(TypeError) as no:
        sqlkrp.KRP(2, 100, 5)
    assert str(no.value) == (
        "KRP was given 3 values without a name, and takes degree and n_components so: name the "
        "others"
    )


def test_a_parameter_is_one_option_whatever_the_map():
    # The command line reads an option before it knows the map.
    for kind in MAPS:
        for option, one in options_of_map(kind).items():
            first = MAP_OPTIONS[option]
            assert (one.name, one.metavar, one.common) == (
                first.name, first.metavar, first.common
            ), (kind, option)  # fmt: skip
            assert one.check.reads is first.check.reads, (kind, option)
            if one.check.reads is not None:
                assert one.check.words.keys() == first.check.words.keys(), (kind, option)


def test_options_of_maps_do_not_hide_those_of_commands():
    (commands,) = (of.choices for of in parser()._actions if isinstance(of.choices, dict))
    for command in ("featurize", "draw"):
        dests = [action.dest for action in commands[command]._actions]
        for one in MAP_OPTIONS.values():
            assert dests.count(f"map_{one.name}") == 1, (command, one.name)


@pytest.mark.parametrize(
    ("check", "good", "bad", "told"),
    [
        (Whole(1, 5), [1, 5], [0, 6, 2.0, True, "2", None], "a whole number from 1 to 5"),
        (Whole(1, words={"auto": ""}), [1, "auto"], ["Auto", None], "a whole number >= 1, or auto"),
        (Even(2, why="both"), [2, 8], [3, 1, "x"], "an even number >= 2"),
        (PowerOfTwo(1), [1, 64], [0, 48], "a power of two >= 1"),
        (Number(2), [2, 2.5], [1.9, float("nan"), float("inf"), 10**400, "2"], "a number >= 2"),
        (Number(0, above=True, words={None: "all"}), [1e-9, None], [0, "None"],
         "a number > 0, or None (all)"),
        (OneOf({"a": "", None: "", "b": "c"}), ["a", None, "b"], ["c", "None", 0],
         "a, None, or b (c)"),
        (Switch(), [True, False], [1, 0, None, "True"], ""),
        (Seed(0), [None, 0, 2**70, np.random.default_rng(), np.random.RandomState()],
         [-1, 1.5, np.random.default_rng], "a whole number >= 0, or a Generator or RandomState of "
         "NumPy, which draws the seed"),
    ],
)  # fmt: skip
def test_what_may_be_and_what_may_not(check, good, bad, told):
    for value in good:
        check.require("x", value)
    for value in bad:
        with pytest.raises(ParameterError, match=r"^x=.* (is not allowed: use|is odd, and both)"):
            check.require("x", value)
    assert check.told(str) == told


#: Maps whose counts and degrees are NumPy's whole numbers, and the same of Python's.
NUMPY_NUMBERS = [
    lambda n: sqlkrp.KRP(n(2), n(100), n_terms=n(3), gamma=0.05, random_state=0),
    lambda n: sqlkrp.TensorSketch(n(3), n(100), random_state=0),
    lambda n: sqlkrp.ComplexKRP(n(4), n(100), n_terms=n(50), random_state=0),
    lambda n: sqlkrp.PRP(n(4), n_matrices=n(2), random_state=0),
    lambda n: sqlkrp.SORF(n(4), random_state=0),
    lambda n: sqlkrp.ExplicitRP(n(2), n(4), random_state=0),
    lambda n: sqlkrp.Monomials(n(3)),
    lambda n: sqlkrp.Thresholds(n(3)),
    lambda n: sqlkrp.RandomMaclaurin(n(4), degree=n(2), random_state=0),
    lambda n: sqlkrp.RankOneProjection(n(4), random_state=0),
    lambda n: sqlkrp.SphericalRandomFeatures(n(4), degree=n(2), random_state=0),
    lambda n: sqlkrp.KGRP(n(4), n_landmarks=n(9), n_marked=n(3), random_state=0),
    lambda n: sqlkrp.PCA(n(2), random_state=0),
    lambda n: sqlkrp.Ensemble(sqlkrp.KRP(n(2), n(4)), n(2), random_state=0),
    lambda n: sqlkrp.chain(sqlkrp.PCA(n(2)), sqlkrp.KRP(n(2), n(4)), random_state=0),
]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_numpy_s_numbers_draw_what_python_s_draw(kind):
    frame = dyadic(20, 3)
    for make in NUMPY_NUMBERS:
        ours, theirs = make(int).fit(frame), make(kind).fit(frame)
        assert theirs.digest_ == ours.digest_
        assert theirs.title == ours.title
        assert "np." not in theirs.to_sql("t")


def test_numpy_s_floats_draw_what_python_s_draw():
    ours = sqlkrp.KRP(2, 4, gamma=float(np.float32(0.1)), random_state=0).fit(["a", "b"])
    theirs = sqlkrp.KRP(2, 4, gamma=np.float32(0.1), random_state=0).fit(["a", "b"])
    assert theirs.digest_ == ours.digest_


def test_counts_that_no_memory_has_are_refused():
    for make in (
        lambda: sqlkrp.PRP(4, n_matrices=10**30),
        lambda: sqlkrp.KRP(2, 4, pool="achlioptas", n_hyperplanes=10**10),
        lambda: sqlkrp.TensorSketch(10**30, 4),
    ):
        with pytest.raises(ParameterError, match="use a whole number"):
            make().fit(["a", "b"])
