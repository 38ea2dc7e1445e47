"""From data as people have them to what they want to know: objects that a file keeps whole.

They are not estimators of arrays: `fit` takes a data frame or a folder's images, `predict_frame` gives a data frame.
"""

from mercer.app.projects.clustering import DataClustering
from mercer.app.projects.embedding import DataEmbedding
from mercer.app.projects.table_prediction import TablePrediction

__all__ = ["DataClustering", "DataEmbedding", "TablePrediction"]
