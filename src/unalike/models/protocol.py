"""Protocol: what scikit-learn expects of an estimator, without needing it."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any, TypeVar

from unalike.errors import InputError

Estimator = TypeVar("Estimator", bound="Parameters")
NESTED = "__"
COLUMN = "A column-vector y was passed when a 1d array was expected."


class Parameters:
    """An object whose parameters are those of its constructor, by the same names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and options of the method such as `method__hidden`."""
        plain = {name: getattr(self, name) for name in self._names()}
        return plain | self._deep() if deep else plain

    def set_params(self: Estimator, **wanted: Any) -> Estimator:
        """Other values for some parameters."""
        known = self.get_params()
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"Invalid parameter '{name}' of {type(self).__name__}; "
                    f"valid are {', '.join(known)}."
                )
        for name, value in wanted.items():
            if NESTED not in name:
                setattr(self, name, value)
        self._set_deep({name: v for name, v in wanted.items() if NESTED in name})
        return self

    def __sklearn_clone__(self: Estimator) -> Estimator:
        """An unfitted copy; a graph is shared and not copied."""
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not usual[name].default
        )
        return f"{type(self).__name__}({', '.join(told)})"

    def _deep(self) -> dict[str, Any]:
        return {}

    def _set_deep(self, wanted: dict[str, Any]) -> None:
        pass

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)


def not_fitted(estimator: object) -> Exception:
    """The error of what was not fitted, scikit-learn's own where that is used."""
    told = f"This {type(estimator).__name__} is not fitted yet; call `fit` first."
    if "sklearn" not in sys.modules:
        return InputError(told)
    from sklearn.exceptions import NotFittedError

    return NotFittedError(told)


def warn_of_column() -> None:
    """Warn of labels in a column, in scikit-learn's words and kind where it is used."""
    kind: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        kind = DataConversionWarning
    warnings.warn(COLUMN, kind, stacklevel=5)


def classifier_tags() -> Any:
    """What scikit-learn may know of a classifier of nodes."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(),
        input_tags=InputTags(sparse=True),
    )
