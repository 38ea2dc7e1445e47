"""The schemas: what the fitted state of each class must be for a file to be loaded.

Sizes are letters, which have one value within an object. A new fitted attribute that a method reads belongs here: a
test finds one that is missing.
"""

# Importing each of these modules adds its schemas to SCHEMAS.
import mercer.io.schemas.clusters
import mercer.io.schemas.maps
import mercer.io.schemas.scikit_learn
import mercer.io.schemas.table_models
import mercer.io.schemas.tables
import mercer.io.schemas.workflows  # noqa: F401
from mercer.io.objects import SCHEMAS, check_model

__all__ = ["SCHEMAS", "check_model"]
