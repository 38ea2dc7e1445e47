"""Schemas of encoders of tables, of their readers, and of models on top of an encoder."""

from typing import Any

from mercer.exceptions import ModelFileError
from mercer.io.objects import (
    SCHEMAS,
    Schema,
    fitted,
)
from mercer.io.schema import (
    Place,
    each,
    flag,
    mapping,
    maybe,
    number,
    numbers,
    one_of,
    text,
    texts,
    whole,
)
from mercer.io.schemas.shared import D


def check_column(column: Any, place: Place) -> None:
    """Check that `kept` are positions among the reader's numbers, by letting the reader read one missing value."""
    from mercer.tables.frames import optional

    if type(column.reader).__name__ == "Numbers":
        width = 1
    else:
        missing = optional("pandas", "a table").Series([None], dtype=object, name="x")
        try:
            width = column.reader.read(missing).raw.shape[1]
            named = len(column.reader.names("x"))
        except Exception as error:  # an invalid format or time zone, or anything else
            raise ModelFileError(f"is malformed: {place.at('reader').name} reads nothing: {error}") from error
        if named != width:
            place.at("reader").refuse(named, f"a reader with {width} names")
    if column.kept.max(initial=-1) >= width:
        place.at("kept").refuse(column.kept, f"numbers below {width}")


def check_levels(reader: Any, place: Place) -> None:
    """Check that there is a mean for each level."""
    if len(reader.means) != len(reader.levels) + bool(reader.missing):
        place.at("means").refuse(reader.means, f"of {len(reader.levels) + bool(reader.missing)} levels")


def check_encoder(encoder: Any, place: Place) -> None:
    """Check that the encoder returns as many columns as it says, from columns that it knows by name."""
    made = sum(len(column.kept) + bool(column.marked) for column in encoder.columns_)
    if made != place.sizes["o"]:
        place.at("origins_").refuse(encoder.origins_, f"of the {made} columns that are made")
    if len(encoder.kinds_) != place.sizes["d"]:
        place.at("kinds_").refuse(encoder.kinds_, f"the kinds of {place.sizes['d']} columns")
    unnamed = [f"x{i}" for i in range(place.sizes["d"])]
    if list(encoder.kinds_) != list(getattr(encoder, "feature_names_in_", unnamed)):
        place.at("kinds_").refuse(list(encoder.kinds_), "the kinds of feature_names_in_")
    for i, column in enumerate(encoder.columns_):
        if column.name not in encoder.kinds_:
            place.at("columns_").at(i).refuse(column.name, "one of the columns of the table")


def check_tabular(model: Any, place: Place) -> None:
    """Check that the estimator was fitted on as many columns as the encoder returns."""
    encoder, estimator = model.encoder_, model.estimator_
    made, taken = len(getattr(encoder, "origins_", [])), getattr(estimator, "n_features_in_", None)
    if type(encoder).__name__ == "TableEncoder" and taken != made:
        place.at("estimator_").refuse(taken, f"fitted on the {made} columns that the encoder makes")


READERS = fitted("Numbers", "Dates", "Categories", "LevelMeans", "Texts")
KINDS = mapping(text, one_of("number", "category", "date", "text", "constant", "missing"))
SCHEMAS["Numbers"] = Schema({})
SCHEMAS["Dates"] = Schema({"form": maybe(text), "zone": maybe(text)})
SCHEMAS["Categories"] = Schema({"levels": texts("l"), "missing": flag})
SCHEMAS["LevelMeans"] = Schema(
    {
        "levels": texts("l"),
        "missing": flag,
        "means": numbers("? c"),
        "mean": numbers("c"),
        "weight": number(at_least=0.0),
        "titles": each("c", text),
    },
    together=check_levels,
)
SCHEMAS["Texts"] = Schema({"ngrams": texts("g"), "idf": numbers("g"), "directions": numbers("k g")})
SCHEMAS["EncodedColumn"] = Schema(
    {
        "name": text,
        "reader": READERS,
        "kept": whole("k"),
        "fill": numbers("k"),
        "center": numbers("k"),
        "factor": numbers("k"),
        "marked": flag,
    },
    together=check_column,
)
SCHEMAS["TableEncoder"] = Schema(
    {
        **D,
        "columns_": each("?", fitted("EncodedColumn")),
        "kinds_": KINDS,
        "origins_": whole("o", below="d"),
        "variances_": numbers("o", at_least=0.0),
    },
    together=check_encoder,
)
ESTIMATORS = fitted(
    "GPClassifier",
    "GPRegressor",
    "KernelDiscriminant",
    "KernelEmbedding",
    "MCR2",
    "ManifoldClustering",
    "NMCE",
    "Nystrom",
    "RFMClassifier",
    "RFMRegressor",
    "SubspaceClustering",
    "ColumnWarp",
)
SCHEMAS["TabularModel"] = Schema(
    {**D, "encoder_": fitted("TableEncoder", d="d"), "estimator_": ESTIMATORS}, together=check_tabular
)
