"""Random features of the polynomial kernel by SUM/minus SQL, where the data lives.

>>> import sqlkrp
>>> krp = sqlkrp.KRP(degree=2, n_components=8, random_state=0).fit(["height", "width"])
>>> sql = krp.to_sql("warehouse.parts", keep=["id"])
"""

from typing import TYPE_CHECKING

from sqlkrp.version import __version__ as __version__

if TYPE_CHECKING:
    from sqlkrp.maps import *  # noqa: F403 - mypy does not find these through public
    from sqlkrp.models import *  # noqa: F403
    from sqlkrp.public import *  # noqa: F403 - it says what is public
else:

    def __getattr__(name):
        """A public name: all are imported when the first of them is asked for.

        The command line comes through here, too: it imports what takes its time where Ctrl-C is
        one line, and no traceback of an import.
        """
        here = globals()
        if name == "__all__" or not name.startswith("__"):
            from importlib import import_module

            public = import_module("sqlkrp.public")
            here.update({one: getattr(public, one) for one in ("__all__", *public.__all__)})
        if name not in here:
            raise AttributeError(f"module 'sqlkrp' has no attribute {name!r}", name=name)
        return here[name]

    def __dir__():
        return __getattr__("__all__")
